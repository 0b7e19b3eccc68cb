package tableformat.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** Reads the text of a statement token by token. Skips white space and comments, as Spark's lexer does. */
final class SqlCursor {
  enum Kind { WORD, QUOTED, NUMBER, TEXT, SIGN, UNKNOWN, END }

  /** `start` is the position of the first character in the statement, `stop` the position after the last one. */
  record Token(Kind kind, String text, int start, int stop) {
    boolean isWord(String word) {
      return kind == Kind.WORD && text.equalsIgnoreCase(word);
    }

    boolean isSign(String sign) {
      return kind == Kind.SIGN && text.equals(sign);
    }
  }

  private static final Pattern SPACE = Pattern.compile("(\\s|--[^\\r\\n]*)+");
  private static final Pattern NUMBER =
      Pattern.compile("(\\d+(\\.\\d*)?|\\.\\d+)([eE][+-]?\\d+)?(BD|bd|[lLsSyYdDfF])?(?![\\p{L}\\p{N}_])");
  private static final Pattern WORD = Pattern.compile("[\\p{L}\\p{N}_]+");
  private static final Pattern QUOTED = Pattern.compile("`[^`]*+(``[^`]*+)*+`");
  private static final Pattern TEXT = Pattern.compile(
      "'[^'\\\\]*+((\\\\.|'')[^'\\\\]*+)*+'|\"[^\"\\\\]*+((\\\\.|\"\")[^\"\\\\]*+)*+\"", Pattern.DOTALL);
  private static final Pattern SIGN = Pattern.compile("<=|>=|[-+(),.;=<>*]");

  private final String text;
  private final List<Token> tokens = new ArrayList<>();
  private int place;

  SqlCursor(String text) {
    this.text = text;
  }

  String text() {
    return text;
  }

  /** The next token, which is not consumed. */
  Token peek() {
    return peek(0);
  }

  Token peek(int ahead) {
    while (tokens.size() <= place + ahead) {
      Token last = tokens.isEmpty() ? null : tokens.get(tokens.size() - 1);
      tokens.add(read(last == null ? 0 : last.stop(), last));
    }
    return tokens.get(place + ahead);
  }

  Token next() {
    Token token = peek();
    place++;
    return token;
  }

  /** Whether the next tokens are these words. Consumes nothing. */
  boolean isAt(String... words) {
    for (int i = 0; i < words.length; i++) {
      if (!peek(i).isWord(words[i])) {
        return false;
      }
    }
    return true;
  }

  /** Consumes these words if they are next. */
  boolean take(String... words) {
    if (!isAt(words)) {
      return false;
    }
    place += words.length;
    return true;
  }

  boolean takeSign(String sign) {
    if (!peek().isSign(sign)) {
      return false;
    }
    place++;
    return true;
  }

  void expect(String... words) {
    for (String word : words) {
      if (!take(word)) {
        throw error(word);
      }
    }
  }

  void expectSign(String sign) {
    if (!takeSign(sign)) {
      throw error("'" + sign + "'");
    }
  }

  /** Expects the end of the statement, optionally after one semicolon. */
  void expectEnd(String orElse) {
    takeSign(";");
    if (peek().kind() != Kind.END) {
      throw error(orElse.isEmpty() ? "the end of the statement" : orElse + ", or the end of the statement");
    }
  }

  boolean isAtName() {
    return peek().kind() == Kind.WORD || peek().kind() == Kind.QUOTED;
  }

  /** One part of a name, without its backticks. */
  String name(String expected) {
    if (!isAtName()) {
      throw error(expected);
    }
    Token token = next();
    return token.kind() == Kind.WORD
        ? token.text() : token.text().substring(1, token.text().length() - 1).replace("``", "`");
  }

  /** The parts of a name, separated by dots. */
  List<String> names(String expected) {
    List<String> parts = new ArrayList<>();
    do {
      parts.add(name(expected));
    } while (takeSign("."));
    return parts;
  }

  long wholeNumber(String expected) {
    String digits = peek().text().replaceFirst("[lL]$", "");
    if (peek().kind() != Kind.NUMBER || !digits.matches("\\d{1,19}")) {
      throw error(expected);
    }
    try {
      long number = Long.parseLong(digits);
      next();
      return number;
    } catch (NumberFormatException e) {
      throw error(expected);
    }
  }

  /** The value of a string literal, by Spark's own rules. */
  String text(String expected, ParserInterface spark) {
    if (peek().kind() != Kind.TEXT) {
      throw error(expected);
    }
    try {
      if (spark.parseExpression(peek().text()) instanceof Literal literal) {
        next();
        return literal.value().toString();
      }
    } catch (ParseException e) {
      throw error(expected);
    }
    throw error(expected);
  }

  /** The text of an expression, up to the next comma or closing parenthesis outside it. Spark later checks that it is one. */
  String expression(String expected) {
    int start = peek().start();
    int stop = start;
    int open = 0;
    while (peek().kind() != Kind.END && (open > 0 || !(peek().isSign(",") || peek().isSign(")")))) {
      Token token = next();
      open += token.isSign("(") || token.text().equals("[") ? 1 : token.isSign(")") || token.text().equals("]") ? -1 : 0;
      stop = token.stop();
    }
    if (stop == start) {
      throw error(expected);
    }
    return text.substring(start, stop);
  }

  /** Spark's syntax error for the next token, with what was expected instead. */
  RuntimeException error(String expected) {
    return SqlErrors.syntax(text, peek(), expected);
  }

  private Token read(int from, Token before) {
    int start = afterSpace(from);
    if (start >= text.length()) {
      return new Token(Kind.END, "", text.length(), text.length());
    }
    boolean isPart = before != null && before.isSign(".");
    // Digits after the dot of a name belong to the name; `t.5` does not contain a decimal number.
    boolean follows = before != null && before.stop() == start && (before.kind() == Kind.WORD || before.kind() == Kind.QUOTED);
    Token token = isPart || (follows && text.charAt(start) == '.') ? null : matched(Kind.NUMBER, NUMBER, start);
    token = token == null ? matched(Kind.WORD, WORD, start) : token;
    token = token == null ? matched(Kind.QUOTED, QUOTED, start) : token;
    token = token == null ? matched(Kind.TEXT, TEXT, start) : token;
    token = token == null ? matched(Kind.SIGN, SIGN, start) : token;
    return token == null ? new Token(Kind.UNKNOWN, text.substring(start, start + 1), start, start + 1) : token;
  }

  private Token matched(Kind kind, Pattern pattern, int start) {
    Matcher matcher = pattern.matcher(text).region(start, text.length());
    matcher.useTransparentBounds(true);
    return matcher.lookingAt() ? new Token(kind, matcher.group(), start, matcher.end()) : null;
  }

  private int afterSpace(int from) {
    int start = from;
    while (true) {
      Matcher space = SPACE.matcher(text).region(start, text.length());
      int after = space.lookingAt() ? space.end() : start;
      if (text.startsWith("/*", after) && !text.startsWith("/*+", after)) {
        after = afterComment(after);
      }
      if (after == start) {
        return start;
      }
      start = after;
    }
  }

  /** Bracketed comments can be nested. */
  private int afterComment(int start) {
    int depth = 0;
    for (int i = start; i < text.length(); i++) {
      if (text.startsWith("/*", i)) {
        depth++;
        i++;
      } else if (text.startsWith("*/", i)) {
        depth--;
        i++;
        if (depth == 0) {
          return i + 1;
        }
      }
    }
    return text.length();
  }
}
