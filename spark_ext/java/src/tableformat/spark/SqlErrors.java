package tableformat.spark;

import java.util.Map;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.CommonToken;
import org.antlr.v4.runtime.ParserRuleContext;
import org.antlr.v4.runtime.Token;
import org.antlr.v4.runtime.misc.Pair;
import org.apache.spark.sql.catalyst.parser.ParseException;

/** Errors in statements of our grammar, in the form of Spark's own syntax errors. */
final class SqlErrors {
  private SqlErrors() {}

  /** SQ-2: a ParseException at the token, with what was expected there. */
  static RuntimeException syntax(String statement, SqlCursor.Token token, String expected) {
    String found = token.kind() == SqlCursor.Kind.END ? "end of input" : "'" + token.text() + "'";
    return Errors.unchecked(new ParseException(
        "PARSE_SYNTAX_ERROR", Scala.map(Map.of("error", found, "hint", ": expected " + expected)),
        at(statement, token)));
  }

  /** The position of a token, in the form that Spark's constructor accepts in every version. */
  private static ParserRuleContext at(String statement, SqlCursor.Token token) {
    CommonToken place = new CommonToken(
        new Pair<>(null, CharStreams.fromString(statement)), Token.MIN_USER_TOKEN_TYPE, Token.DEFAULT_CHANNEL,
        token.start(), Math.max(token.start(), token.stop() - 1));
    String before = statement.substring(0, token.start());
    place.setLine(1 + (int) before.chars().filter(each -> each == '\n').count());
    place.setCharPositionInLine(before.length() - 1 - before.lastIndexOf('\n'));
    ParserRuleContext context = new ParserRuleContext();
    context.start = place;
    context.stop = place;
    return context;
  }
}
