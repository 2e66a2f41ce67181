import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/** Statements of Flink SQL; apart, because FlinkCEP runs without the jars of tables. */
final class Statements {
  private Statements() {}

  /**
   * The rows of a statement over a table of these events, as numbers.
   *
   * <p>The table has their columns and {@code time}, which is {@code ts} in milliseconds. Its
   * watermark stays one behind, because events of one time are not late. Columns may be NULL: of one that
   * may not, {@code LAST(X.v, 1) IS NULL} would be false in the first row of X, too.
   */
  static <E> DataStream<long[]> add(
      StreamExecutionEnvironment environment, DataStream<E> events, Field.Of<E> of, String text) {
    StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
    Schema.Builder schema = Schema.newBuilder();
    for (String[] column : of.columns()) {
      schema.column(column[0], column[1]);
    }
    schema
        .columnByExpression("time", "TO_TIMESTAMP_LTZ(ts, 3)")
        .watermark("time", "`time` - INTERVAL '0.001' SECOND(1, 3)");
    tables.createTemporaryView(of.name(), events, schema.build());
    return tables
        .toDataStream(tables.sqlQuery(text))
        .map(
            row -> {
              long[] numbers = new long[row.getArity()];
              for (int index = 0; index < numbers.length; index++) {
                numbers[index] = ((Number) row.getField(index)).longValue();
              }
              return numbers;
            })
        .returns(PrimitiveArrayTypeInfo.LONG_PRIMITIVE_ARRAY_TYPE_INFO);
  }
}
