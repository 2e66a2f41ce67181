import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * The tasks in FlinkCEP: its Java API on a cluster inside this process, with one slot.
 *
 * <p>The argument is a folder with {@code events.csv} and {@code quotes.csv}: {@code k,ts,v,type},
 * no header, in the order of {@code ts}; {@code type} is a number, and none in quotes. Both are held
 * in memory; a job emits them as its source, in event time, and its rows are kept as numbers, so that
 * a run reads no file and writes none. The process says {@code ready} and its version, and then
 * answers each line of its standard input by one line:
 *
 * <pre>
 *   match PATTERN WINDOW   the number of rows; WINDOW: the most time from first to last event
 *   read TABLE             the number of rows of a job that has the source, the shuffle by key and
 *                          the sink, but no pattern
 *   write PATH             "written": the rows of the last match, one a line, numbers and commas
 * </pre>
 *
 * <p>A line that cannot be carried out is answered by {@code error} and the reason. The process ends
 * with its input. in_flink.py is the other side.
 */
public final class Patterns {
  private static final int A = 0;
  private static final int B = 1;
  private static final int C = 2;

  /** Follows the last quote of a key, where MATCH_RECOGNIZE sees the end of the partition. */
  private static final int END = -1;

  /** An event, with the fields and the constructor that Flink's own serializer asks for. */
  public static final class Event {
    public int k;
    public long ts;
    public int v;
    public int type;

    public Event() {}

    Event(int k, long ts, int v, int type) {
      this.k = k;
      this.ts = ts;
      this.v = v;
      this.type = type;
    }
  }

  // The jobs run in this process: their source and their sink reach these.
  private static Event[] events;
  private static Event[] quotes;
  private static final Rows ROWS = new Rows();

  private final MiniCluster cluster;

  private Patterns(MiniCluster cluster) {
    this.cluster = cluster;
  }

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err); // nothing but answers goes there
    events = table(Path.of(arguments[0], "events.csv"));
    quotes = withEnds(table(Path.of(arguments[0], "quotes.csv")));
    Configuration settings = new Configuration();
    settings.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(64));
    settings.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.ofMebiBytes(64));
    MiniClusterConfiguration one =
        new MiniClusterConfiguration.Builder()
            .setConfiguration(settings)
            .setNumTaskManagers(1)
            .setNumSlotsPerTaskManager(1)
            .withRandomPorts()
            .build();
    try (MiniCluster cluster = new MiniCluster(one)) {
      cluster.start();
      answers.println("ready " + EnvironmentInformation.getVersion());
      Patterns patterns = new Patterns(cluster);
      BufferedReader asked =
          new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = asked.readLine(); line != null; line = asked.readLine()) {
        answers.println(patterns.answer(line));
      }
    }
  }

  private String answer(String line) {
    try {
      String[] words = line.split(" ", 2);
      switch (words[0]) {
        case "match":
          String[] rest = words[1].split(" ");
          return Integer.toString(match(rest[0], Long.parseLong(rest[1])));
        case "read":
          return Integer.toString(read(words[1]));
        case "write":
          ROWS.write(Path.of(words[1]));
          return "written";
        default:
          throw new IllegalArgumentException("no such command: " + line);
      }
    } catch (Exception error) {
      Throwable cause = error;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      return ("error " + cause).replace('\n', ' ');
    }
  }

  // --- jobs --------------------------------------------------------------------------------------

  private int match(String name, long window) throws Exception {
    StreamExecutionEnvironment environment = environment();
    // A window of Flink holds less than its length, and time is in whole units.
    Duration within = Duration.ofMillis(window + 1);
    DataStream<long[]> rows;
    switch (name) {
      case "neighbours":
        rows = found(keyed(source(environment, events)), first(A).next("b").where(is(B)), AB);
        break;
      case "two_events":
        rows =
            found(
                keyed(source(environment, events)),
                first(A).followedByAny("b").where(is(B)).within(within),
                AB);
        break;
      case "three_events":
        rows = found(keyed(source(environment, events)), abc().within(within), KEY_AND_ABC);
        break;
      case "three_events_without_a_key":
        rows = found(source(environment, events), abc().within(within), ABC);
        break;
      case "absence":
        rows =
            found(
                keyed(source(environment, events)),
                first(A)
                    .notFollowedBy("c")
                    .where(is(C))
                    .followedByAny("b")
                    .where(is(B))
                    .within(within),
                AB);
        break;
      case "rising_run":
        rows = found(keyed(source(environment, quotes)), risingRun(), RUN);
        break;
      case "v_shape":
        rows = found(keyed(source(environment, quotes)), vShape(), V);
        break;
      default:
        throw new IllegalArgumentException("no such pattern: " + name);
    }
    return executed(environment, rows);
  }

  private int read(String table) throws Exception {
    StreamExecutionEnvironment environment = environment();
    DataStream<Event> source = source(environment, table.equals("events") ? events : quotes);
    return executed(
        environment,
        keyed(source)
            .map(event -> new long[] {event.k, event.ts, event.v})
            .returns(PrimitiveArrayTypeInfo.LONG_PRIMITIVE_ARRAY_TYPE_INFO));
  }

  private static StreamExecutionEnvironment environment() {
    StreamExecutionEnvironment environment =
        StreamExecutionEnvironment.getExecutionEnvironment().setParallelism(1);
    environment.getConfig().enableObjectReuse(); // no copies between chained operators
    return environment;
  }

  private static DataStream<Event> source(
      StreamExecutionEnvironment environment, Event[] of) {
    GeneratorFunction<Long, Event> at =
        of == events ? number -> events[number.intValue()] : number -> quotes[number.intValue()];
    return environment.fromSource(
        new DataGeneratorSource<>(at, of.length, TypeInformation.of(Event.class)),
        WatermarkStrategy.<Event>forMonotonousTimestamps()
            .withTimestampAssigner((event, assigned) -> event.ts),
        "events");
  }

  private static DataStream<Event> keyed(DataStream<Event> events) {
    return events.keyBy((KeySelector<Event, Integer>) event -> event.k);
  }

  private static DataStream<long[]> found(
      DataStream<Event> events, Pattern<Event, ?> pattern, PatternSelectFunction<Event, long[]> row) {
    return CEP.pattern(events, pattern)
        .inEventTime()
        .select(row, PrimitiveArrayTypeInfo.LONG_PRIMITIVE_ARRAY_TYPE_INFO);
  }

  private int executed(StreamExecutionEnvironment environment, DataStream<long[]> rows)
      throws Exception {
    ROWS.clear();
    rows.sinkTo(new ToRows());
    cluster.executeJobBlocking(environment.getStreamGraph().getJobGraph());
    return ROWS.count;
  }

  // --- patterns ----------------------------------------------------------------------------------

  private static Pattern<Event, Event> first(int type) {
    return Pattern.<Event>begin("a").where(is(type));
  }

  private static Pattern<Event, Event> abc() {
    return first(A).followedByAny("b").where(is(B)).followedByAny("c").where(is(C));
  }

  /** The event after the run ends it: Flink has no greedy end of a pattern. */
  private static Pattern<Event, Event> risingRun() {
    return Pattern.<Event>begin("run", AfterMatchSkipStrategy.skipToFirst("after"))
        .where(steps("run", null, true))
        .timesOrMore(4)
        .consecutive()
        .greedy()
        .next("after")
        .where(steps("run", "run", false));
  }

  private static Pattern<Event, Event> vShape() {
    return Pattern.<Event>begin("top", AfterMatchSkipStrategy.skipToLast("up"))
        .where(SimpleCondition.of(event -> event.type != END))
        .next("down")
        .where(falls())
        .oneOrMore()
        .consecutive()
        .greedy()
        .next("up")
        .where(steps("up", "down", true))
        .oneOrMore()
        .consecutive()
        .greedy()
        .next("after")
        .where(steps("up", "up", false));
  }

  private static SimpleCondition<Event> is(int type) {
    return SimpleCondition.of(event -> event.type == type);
  }

  /**
   * Whether an event is above the last one of a part, or the end of its run. Where the part has no
   * event yet, it is compared with the last one of the part before; without one it may be any.
   */
  private static IterativeCondition<Event> steps(String part, String before, boolean up) {
    return new IterativeCondition<>() {
      @Override
      public boolean filter(Event event, Context<Event> context) throws Exception {
        Event previous = last(context.getEventsForPattern(part));
        if (previous == null && before != null) {
          previous = last(context.getEventsForPattern(before));
        }
        boolean rises = event.type != END && (previous == null || event.v > previous.v);
        return rises == up;
      }
    };
  }

  private static IterativeCondition<Event> falls() {
    return new IterativeCondition<>() {
      @Override
      public boolean filter(Event event, Context<Event> context) throws Exception {
        Event previous = last(context.getEventsForPattern("down"));
        if (previous == null) {
          previous = last(context.getEventsForPattern("top"));
        }
        return event.type != END && event.v < previous.v;
      }
    };
  }

  private static Event last(Iterable<Event> events) {
    Event last = null;
    for (Event event : events) {
      last = event;
    }
    return last;
  }

  private static final PatternSelectFunction<Event, long[]> AB =
      found -> new long[] {one(found, "a").k, one(found, "a").ts, one(found, "b").ts};
  private static final PatternSelectFunction<Event, long[]> ABC =
      found -> new long[] {one(found, "a").ts, one(found, "b").ts, one(found, "c").ts};
  private static final PatternSelectFunction<Event, long[]> KEY_AND_ABC =
      found ->
          new long[] {
            one(found, "a").k, one(found, "a").ts, one(found, "b").ts, one(found, "c").ts
          };
  private static final PatternSelectFunction<Event, long[]> RUN =
      found -> new long[] {one(found, "run").k, one(found, "run").ts, last(found.get("run")).ts};
  private static final PatternSelectFunction<Event, long[]> V =
      found -> new long[] {one(found, "top").k, one(found, "top").ts, last(found.get("up")).ts};

  private static Event one(Map<String, List<Event>> found, String part) {
    return found.get(part).get(0);
  }

  // --- events in and rows out --------------------------------------------------------------------

  private static Event[] table(Path path) throws IOException {
    List<Event> read = new ArrayList<>();
    try (BufferedReader lines = Files.newBufferedReader(path)) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] fields = line.split(",");
        read.add(
            new Event(
                Integer.parseInt(fields[0]),
                Long.parseLong(fields[1]),
                Integer.parseInt(fields[2]),
                fields.length > 3 ? Integer.parseInt(fields[3]) : 0));
      }
    }
    return read.toArray(new Event[0]);
  }

  private static Event[] withEnds(Event[] quotes) {
    TreeSet<Integer> keys = new TreeSet<>();
    for (Event quote : quotes) {
      keys.add(quote.k);
    }
    Event[] all = Arrays.copyOf(quotes, quotes.length + keys.size());
    int next = quotes.length;
    long ts = quotes[next - 1].ts;
    for (int key : keys) {
      all[next++] = new Event(key, ++ts, 0, END);
    }
    return all;
  }

  /** Rows of equal width, as numbers one after another. */
  private static final class Rows {
    private long[] values = new long[1 << 16];
    private int used;
    private int count;

    void clear() {
      used = 0;
      count = 0;
    }

    void add(long[] row) {
      if (used + row.length > values.length) {
        values = Arrays.copyOf(values, 2 * values.length);
      }
      System.arraycopy(row, 0, values, used, row.length);
      used += row.length;
      count++;
    }

    void write(Path path) throws IOException {
      int width = count == 0 ? 0 : used / count;
      try (BufferedWriter out = Files.newBufferedWriter(path)) {
        for (int index = 0; index < used; index++) {
          out.write(Long.toString(values[index]));
          out.write((index + 1) % width == 0 ? '\n' : ',');
        }
      }
    }
  }

  private static final class ToRows implements Sink<long[]> {
    @Override
    public SinkWriter<long[]> createWriter(WriterInitContext context) {
      return new SinkWriter<>() {
        @Override
        public void write(long[] row, Context unused) {
          ROWS.add(row);
        }

        @Override
        public void flush(boolean endOfInput) {}

        @Override
        public void close() {}
      };
    }
  }
}
