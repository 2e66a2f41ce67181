import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.FilterFunction;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.EventComparator;
import org.apache.flink.cep.PatternStream;
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
 * The tasks in Flink: patterns of FlinkCEP, or statements of Flink SQL, on a cluster inside this
 * process with a slot for each core.
 *
 * <p>The argument is the number of cores. The program of a data set is a class
 * {@code Of_NAME}, which in_flink.py writes: its events, its patterns and its keys. Events are held in
 * memory; a job emits them as its source in the order of time, and its rows are kept as numbers, so that a
 * run reads no file and writes none. The process says {@code ready} and its version, and then answers
 * each line of its standard input by one line:
 *
 * <pre>
 *   load NAME PATH   "loaded": the events of NAME are those of a file of comma-separated values
 *   match TASK       the number of rows of the pattern of a task
 *   sql TEXT         the number of rows of a statement
 *   write PATH       "written": the rows of the last answer, one a line, numbers and commas
 * </pre>
 *
 * <p>A line that cannot be carried out is answered by {@code error} and the reason. The process ends
 * with its input. Each key has a last event of the type END after the events of the set, where other
 * engines see the end of a partition: Flink has none, and no greedy end of a pattern.
 */
public final class Field {
  /** The events of a data set, its patterns and its keys; E has public fields, as Flink asks. */
  public abstract static class Of<E> implements Serializable {
    abstract Class<E> type();

    String name() {
      return getClass().getName().substring("Of_".length());
    }

    /** The columns of its table in SQL, each with its type. */
    abstract String[][] columns();

    /** An event of the fields of a line. */
    abstract E event(String[] fields);

    /** The event of the type END for the key of this one. */
    abstract E end(E of, long id, long ts);

    abstract long id(E event);

    abstract long ts(E event);

    /** The key of a data set itself, for its END. */
    abstract Object own(E event);

    /** The events of a task by their key; as they are where it has none. */
    abstract DataStream<E> keyed(DataStream<E> events, String task);

    abstract Pattern<E, ?> pattern(String task);

    /** Which events a task is asked of; null: of all. */
    abstract FilterFunction<E> rows(String task);

    /** The columns of a row: {@code a}, {@code first_a} and {@code last_a} of a part a. */
    abstract String[] answer(String task);

    transient E[] events; // no part of a job

    // What the texts of the tasks are written with.

    Pattern<E, E> begin(String name) {
      return Pattern.begin(name);
    }

    Pattern<E, E> begin(
        String name, org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy skip) {
      return Pattern.begin(name, skip);
    }

    IterativeCondition<E> when(FilterFunction<E> condition) {
      return SimpleCondition.of(condition);
    }

    IterativeCondition<E> given(Given<E> condition) {
      return new Holds<>(condition);
    }

    /** At most so many units of time. A window of Flink holds less than its length. */
    static Duration ms(long most) {
      return Duration.ofMillis(most + 1);
    }
  }

  /** A condition on an event and on those that were found before. */
  public interface Given<T> extends Serializable {
    boolean holds(T event, Found<T> before) throws Exception;
  }

  private static final class Holds<T> extends IterativeCondition<T> {
    private final Given<T> condition;

    Holds(Given<T> condition) {
      this.condition = condition;
    }

    @Override
    public boolean filter(T event, Context<T> context) throws Exception {
      return condition.holds(event, new Found<>(context));
    }
  }

  /** The events of the parts of a pattern so far. */
  public static final class Found<T> {
    private final IterativeCondition.Context<T> context;

    Found(IterativeCondition.Context<T> context) {
      this.context = context;
    }

    /** The first event of a part. */
    public T first(String part) throws Exception {
      return context.getEventsForPattern(part).iterator().next();
    }

    /** The last event of the first of these parts that has one; null where none has. */
    public T last(String... parts) throws Exception {
      for (String part : parts) {
        T last = null;
        for (T event : context.getEventsForPattern(part)) {
          last = event;
        }
        if (last != null) {
          return last;
        }
      }
      return null;
    }
  }

  // The jobs run in this process: their source and their sink reach these.
  private static Of<?> loaded;
  private static final Rows ROWS = new Rows();

  private final MiniCluster cluster;
  private final int cores;

  private Field(MiniCluster cluster, int cores) {
    this.cluster = cluster;
    this.cores = cores;
  }

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err); // nothing but answers goes there
    int cores = Integer.parseInt(arguments[0]);
    Configuration settings = new Configuration();
    settings.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(64));
    settings.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.ofMebiBytes(64));
    MiniClusterConfiguration one =
        new MiniClusterConfiguration.Builder()
            .setConfiguration(settings)
            .setNumTaskManagers(1)
            .setNumSlotsPerTaskManager(cores)
            .withRandomPorts()
            .build();
    try (MiniCluster cluster = new MiniCluster(one)) {
      cluster.start();
      answers.println("ready " + EnvironmentInformation.getVersion());
      Field field = new Field(cluster, cores);
      BufferedReader asked =
          new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = asked.readLine(); line != null; line = asked.readLine()) {
        answers.println(field.answer(line));
      }
    }
  }

  private String answer(String line) {
    try {
      String[] words = line.split(" ", 2);
      switch (words[0]) {
        case "load":
          String[] both = words[1].split(" ", 2);
          loaded = (Of<?>) Class.forName("Of_" + both[0]).getDeclaredConstructor().newInstance();
          read(loaded, Path.of(both[1]));
          return "loaded";
        case "match":
          return Integer.toString(match(loaded, words[1]));
        case "sql":
          return Integer.toString(statement(loaded, words[1]));
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

  private <E> int match(Of<E> of, String task) throws Exception {
    StreamExecutionEnvironment environment = environment();
    DataStream<E> events = source(of, environment);
    if (of.rows(task) != null) {
      events = events.filter(of.rows(task));
    }
    EventComparator<E> byId = (one, other) -> Long.compare(of.id(one), of.id(other));
    PatternStream<E> patterns = CEP.pattern(of.keyed(events, task), of.pattern(task), byId);
    String[] columns = of.answer(task);
    DataStream<long[]> rows =
        patterns
            .inEventTime()
            .select(
                found -> row(of, columns, found),
                PrimitiveArrayTypeInfo.LONG_PRIMITIVE_ARRAY_TYPE_INFO);
    rows.sinkTo(new ToRows());
    return executed(environment);
  }

  private static <E> long[] row(Of<E> of, String[] columns, Map<String, List<E>> found) {
    long[] row = new long[columns.length];
    for (int index = 0; index < row.length; index++) {
      String column = columns[index];
      boolean last = column.startsWith("last_");
      String part = column.substring(column.indexOf('_') + 1);
      List<E> events = found.get(part);
      row[index] = of.id(events.get(last ? events.size() - 1 : 0));
    }
    return row;
  }

  private <E> int statement(Of<E> of, String text) throws Exception {
    StreamExecutionEnvironment environment = environment();
    Statements.add(environment, source(of, environment), of, text).sinkTo(new ToRows());
    return executed(environment);
  }

  private StreamExecutionEnvironment environment() {
    StreamExecutionEnvironment environment =
        StreamExecutionEnvironment.getExecutionEnvironment().setParallelism(cores);
    environment.getConfig().enableObjectReuse(); // no copies between chained operators
    return environment;
  }

  @SuppressWarnings("unchecked")
  private static <E> DataStream<E> source(Of<E> of, StreamExecutionEnvironment environment) {
    GeneratorFunction<Long, E> at = number -> (E) loaded.events[number.intValue()];
    return environment
        .fromSource(
            new DataGeneratorSource<>(at, of.events.length, TypeInformation.of(of.type())),
            WatermarkStrategy.<E>forMonotonousTimestamps()
                .withTimestampAssigner((event, assigned) -> of.ts(event)),
            "events")
        .setParallelism(1); // one reader keeps the order of time
  }

  private int executed(StreamExecutionEnvironment environment) throws Exception {
    ROWS.clear();
    cluster.executeJobBlocking(environment.getStreamGraph().getJobGraph());
    return ROWS.count;
  }

  // --- events in and rows out --------------------------------------------------------------------

  @SuppressWarnings("unchecked")
  private static <E> void read(Of<E> of, Path path) throws IOException {
    List<E> read = new ArrayList<>();
    Map<Object, E> last = new LinkedHashMap<>();
    try (BufferedReader lines = Files.newBufferedReader(path)) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        E event = of.event(line.split(","));
        read.add(event);
        last.put(of.own(event), event);
      }
    }
    long id = of.id(read.get(read.size() - 1)), ts = of.ts(read.get(read.size() - 1));
    for (E event : last.values()) {
      read.add(of.end(event, ++id, ts + 1));
    }
    of.events = (E[]) read.toArray();
  }

  /** Rows of equal width, as numbers one after another. */
  private static final class Rows {
    private long[] values = new long[1 << 16];
    private int used;
    private int count;

    synchronized void clear() {
      used = 0;
      count = 0;
    }

    synchronized void add(long[] row) {
      if (used + row.length > values.length) {
        values = Arrays.copyOf(values, 2 * values.length);
      }
      System.arraycopy(row, 0, values, used, row.length);
      used += row.length;
      count++;
    }

    synchronized void write(Path path) throws IOException {
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
