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
 *   sql TEXT   the number of rows that the statement gives over the table {@code t}, and the seconds
 *              of CPU that each file but the last one took, with commas between
 *   read       the same of a job that has the source, the shuffle by key and the sink alone
 * </pre>
 *
 * <p>A line that cannot be carried out is answered by {@code error} and the reason. The process ends
 * with its input. in_flink_sql.py is the other side.
 */
public final class RowStreams {
  private static byte[] types;
  private static int[] keys;
  private static double[] values;
  private static long[] times;
  private static int rowsOfFile;
  private static final String[] NAMES = new String[128];

  /** The CPU time at which the source came to the first row of each file. */
  private static long[] marks;

  /** The rows of a job. It has one slot, and one job runs at a time. */
  private static long found;

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err); // nothing but answers goes there
    read(Path.of(arguments[0]));
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
      marks = new long[times.length / rowsOfFile + 1];
      String[] words = line.split(" ", 2);
      switch (words[0]) {
        case "sql":
          sql(words[1]);
          break;
        case "read":
          reading();
          break;
        default:
          throw new IllegalArgumentException("no such command: " + line);
      }
      StringBuilder told = new StringBuilder(Long.toString(found)).append(' ');
      for (int file = 1; file < times.length / rowsOfFile; file++) {
        told.append(file > 1 ? "," : "").append((marks[file] - marks[file - 1]) / 1e9);
      }
      return told.toString();
    } catch (Exception error) {
      Throwable cause = error;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      return ("error " + cause).replace('\n', ' ');
    }
  }

  // --- jobs --------------------------------------------------------------------------------------

  private static void sql(String text) throws Exception {
    StreamExecutionEnvironment environment = environment();
    StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
    Schema schema =
        Schema.newBuilder()
            .column("type", DataTypes.STRING())
            .column("key", DataTypes.INT())
            .column("v", DataTypes.DOUBLE())
            .column("ts", DataTypes.TIMESTAMP_LTZ(3))
            .watermark("ts", "ts - INTERVAL '5' SECOND")
            .build();
    tables.createTemporaryView("t", source(environment), schema);
    tables.toDataStream(tables.sqlQuery(text)).sinkTo(new Counting());
    environment.execute();
  }

  private static void reading() throws Exception {
    StreamExecutionEnvironment environment = environment();
    source(environment)
        .keyBy((KeySelector<Row, Integer>) row -> (Integer) row.getField(1), Types.INT)
        .map(row -> row)
        .returns(ROW)
        .sinkTo(new Counting());
    environment.execute();
  }

  private static StreamExecutionEnvironment environment() {
    StreamExecutionEnvironment environment =
        StreamExecutionEnvironment.createLocalEnvironment(1, new Configuration());
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

  private static Row row(int number) {
    if (number % rowsOfFile == 0) {
      marks[number / rowsOfFile] =
          ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
              .getProcessCpuTime();
    }
    return Row.of(
        NAMES[types[number]], keys[number], values[number], Instant.ofEpochMilli(times[number]));
  }

  // --- rows in and out ---------------------------------------------------------------------------

  private static void read(Path folder) throws IOException {
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
