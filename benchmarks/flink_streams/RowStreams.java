import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.function.Function;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/**
 * A statement of Flink SQL with MATCH_RECOGNIZE over a stream of rows, on a cluster of one slot inside
 * this process.
 *
 * <p>The arguments are a folder, and how many rows count as a file. The folder holds the columns of
 * the stream in the order of time: {@code type} (a letter), {@code key} (int), {@code v} (double) and
 * {@code ts} (long, read as milliseconds), as little-endian values. They are held in memory. Each
 * line of the standard input is a command, and is answered by one line:
 *
 * <pre>
 *   sql TEXT    the number of rows that the statement gives over the table {@code t}; the seconds of
 *               CPU that each file but the last one took, with commas between; and those on the clock
 *   read        the same of a job that has the source, the shuffle by key and the sink alone
 *   lines TEXT  as sql, over rows that are read from {@code rows.csv}
 *   kept STATE MILLISECONDS TEXT
 *               as lines, with a checkpoint each so many milliseconds of a state in {@code hashmap},
 *               on the heap, or {@code rocksdb}
 * </pre>
 *
 * <p>A line that cannot be carried out is answered by {@code error} and the reason. The process ends
 * with its input. flink_streams.py is the other side.
 */
public final class RowStreams {
  private static byte[] types;
  private static int[] keys;
  private static double[] values;
  private static long[] times;
  private static int rowsOfFile;
  private static final String[] NAMES = new String[128];

  /** The CPU time, and that of the clock, at which the source came to the first row of each file. */
  private static long[] marks;

  private static long[] clocks;

  /** Of the rows of a job that reads lines, how many the source has come to. */
  private static int came;

  private static Path folder;

  /** The rows of a job. It has one slot, and one job runs at a time. */
  private static long found;

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err); // nothing but answers goes there
    folder = Path.of(arguments[0]).toAbsolutePath();
    read();
    rowsOfFile = Integer.parseInt(arguments[1]);
    for (int code = 0; code < NAMES.length; code++) {
      NAMES[code] = String.valueOf((char) code);
    }
    answers.println("ready " + EnvironmentInformation.getVersion());
    BufferedReader asked =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = asked.readLine(); line != null; line = asked.readLine()) {
      answers.println(answer(line));
    }
  }

  private static String answer(String line) {
    try {
      found = 0;
      came = 0;
      marks = new long[times.length / rowsOfFile + 1];
      clocks = new long[marks.length];
      String[] words = line.split(" ", 2);
      switch (words[0]) {
        case "sql":
          sql(words[1], environment(new Configuration()), RowStreams::source);
          break;
        case "lines":
          sql(words[1], environment(new Configuration()), RowStreams::lines);
          break;
        case "kept":
          String[] asked = words[1].split(" ", 3);
          sql(asked[2], environment(kept(asked[0], asked[1])), RowStreams::lines);
          break;
        case "read":
          reading();
          break;
        default:
          throw new IllegalArgumentException("no such command: " + line);
      }
      return found + " " + differences(marks) + " " + differences(clocks);
    } catch (Exception error) {
      Throwable cause = error;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      return ("error " + cause).replace('\n', ' ');
    }
  }

  private static String differences(long[] moments) {
    StringBuilder told = new StringBuilder();
    for (int file = 1; file < times.length / rowsOfFile; file++) {
      told.append(file > 1 ? "," : "").append((moments[file] - moments[file - 1]) / 1e9);
    }
    return told.toString();
  }

  // --- jobs --------------------------------------------------------------------------------------

  private static void sql(
      String text,
      StreamExecutionEnvironment environment,
      Function<StreamExecutionEnvironment, DataStream<Row>> source)
      throws Exception {
    StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
    Schema schema =
        Schema.newBuilder()
            .column("type", DataTypes.STRING())
            .column("key", DataTypes.INT())
            .column("v", DataTypes.DOUBLE())
            .column("ts", DataTypes.TIMESTAMP_LTZ(3))
            .watermark("ts", "ts - INTERVAL '5' SECOND")
            .build();
    tables.createTemporaryView("t", source.apply(environment), schema);
    tables.toDataStream(tables.sqlQuery(text)).sinkTo(new Counting());
    environment.execute();
  }

  private static void reading() throws Exception {
    StreamExecutionEnvironment environment = environment(new Configuration());
    source(environment)
        .keyBy((KeySelector<Row, Integer>) row -> (Integer) row.getField(1), Types.INT)
        .map(row -> row)
        .returns(ROW)
        .sinkTo(new Counting());
    environment.execute();
  }

  /** What lets a job go on after its process has been killed, as checkpoints of Spark do. */
  private static Configuration kept(String state, String milliseconds) {
    Configuration options = new Configuration();
    options.setString("state.backend.type", state);
    options.setString("execution.checkpointing.incremental", "true"); // of RocksDB
    options.setString("execution.checkpointing.interval", milliseconds + " ms");
    options.setString("execution.checkpointing.dir", folder.resolve("checkpoints").toUri().toString());
    return options;
  }

  private static StreamExecutionEnvironment environment(Configuration options) {
    StreamExecutionEnvironment environment =
        StreamExecutionEnvironment.createLocalEnvironment(1, options);
    environment.getConfig().enableObjectReuse(); // no copies between chained operators
    return environment;
  }

  private static final TypeInformation<Row> ROW =
      Types.ROW_NAMED(
          new String[] {"type", "key", "v", "ts"},
          Types.STRING,
          Types.INT,
          Types.DOUBLE,
          Types.INSTANT);

  private static DataStream<Row> source(StreamExecutionEnvironment environment) {
    GeneratorFunction<Long, Row> at = number -> row(number.intValue());
    return environment.fromSource(
        new DataGeneratorSource<>(at, times.length, ROW),
        WatermarkStrategy.<Row>noWatermarks(),
        "rows");
  }

  private static DataStream<Row> lines(StreamExecutionEnvironment environment) {
    org.apache.flink.core.fs.Path path =
        new org.apache.flink.core.fs.Path(folder.resolve("rows.csv").toUri());
    return environment
        .fromSource(
            FileSource.forRecordStreamFormat(new TextLineInputFormat(), path).build(),
            WatermarkStrategy.<String>noWatermarks(),
            "lines")
        .map(RowStreams::rowOf)
        .returns(ROW);
  }

  private static Row rowOf(String line) {
    mark(came++);
    int key = line.indexOf(',') + 1, value = line.indexOf(',', key) + 1;
    int time = line.indexOf(',', value) + 1;
    return Row.of(
        NAMES[line.charAt(0)],
        Integer.parseInt(line, key, value - 1, 10),
        Double.parseDouble(line.substring(value, time - 1)),
        Instant.ofEpochMilli(Long.parseLong(line, time, line.length(), 10)));
  }

  private static void mark(int number) {
    if (number % rowsOfFile == 0 && number / rowsOfFile < marks.length) {
      clocks[number / rowsOfFile] = System.nanoTime();
      marks[number / rowsOfFile] =
          ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
              .getProcessCpuTime();
    }
  }

  private static Row row(int number) {
    mark(number);
    return Row.of(
        NAMES[types[number]], keys[number], values[number], Instant.ofEpochMilli(times[number]));
  }

  // --- rows in and out ---------------------------------------------------------------------------

  private static void read() throws IOException {
    types = Files.readAllBytes(folder.resolve("type"));
    int count = types.length;
    keys = new int[count];
    values = new double[count];
    times = new long[count];
    bytes(folder.resolve("key")).asIntBuffer().get(keys);
    bytes(folder.resolve("v")).asDoubleBuffer().get(values);
    bytes(folder.resolve("ts")).asLongBuffer().get(times);
  }

  private static ByteBuffer bytes(Path path) throws IOException {
    try (FileChannel channel = FileChannel.open(path)) {
      return channel
          .map(FileChannel.MapMode.READ_ONLY, 0, channel.size())
          .order(ByteOrder.LITTLE_ENDIAN);
    }
  }

  private static final class Counting implements Sink<Row> {
    @Override
    public SinkWriter<Row> createWriter(WriterInitContext context) {
      return new SinkWriter<>() {
        @Override
        public void write(Row row, Context unused) {
          found++;
        }

        @Override
        public void flush(boolean endOfInput) {}

        @Override
        public void close() {}
      };
    }
  }
}
