import Foundation
import OpenCoreData
import Testing

/// The format as a table: what is parsed, and how it is written again.
@Suite("The predicate format")
struct PredicateFormatTests {
  struct Example: Sendable, CustomTestStringConvertible {
    var format: String
    var arguments: @Sendable () -> [Any?] = { [] }
    var written: String

    init(_ format: String, _ written: String) {
      self.format = format
      self.written = written
    }

    init(_ format: String, _ written: String, _ arguments: @escaping @Sendable () -> [Any?]) {
      self.format = format
      self.written = written
      self.arguments = arguments
    }

    var testDescription: String { format }
  }

  static let comparisons = [
    Example("a == 1", "a == 1"),
    Example("a = 1", "a == 1"),
    Example("a != 1", "a != 1"),
    Example("a <> 1", "a != 1"),
    Example("a < 1", "a < 1"),
    Example("a <= 1", "a <= 1"),
    Example("a =< 1", "a <= 1"),
    Example("a > 1", "a > 1"),
    Example("a >= 1", "a >= 1"),
    Example("a => 1", "a >= 1"),
    Example("a between {1, 5}", "a BETWEEN {1, 5}"),
    Example("a in {1,2,3}", "a IN {1, 2, 3}"),
    Example("a IN {}", "a IN {}"),
    Example("a beginswith 'x'", "a BEGINSWITH \"x\""),
    Example("a ENDSWITH[c] \"x\"", "a ENDSWITH[c] \"x\""),
    Example("a contains[cd] 'x'", "a CONTAINS[cd] \"x\""),
    Example("a LIKE [dc] '*x?'", "a LIKE[cd] \"*x?\""),
    Example("a MATCHES '^\\\\d+$'", "a MATCHES \"^\\\\d+$\""),
    Example("a ==[n] 'x'", "a ==[n] \"x\""),
    Example("a <[l] 'x' AND a CONTAINS[w] 'y'", "a <[l] \"x\" AND a CONTAINS[w] \"y\""),
    Example("allTokens tokenmatches[cdl] 'x'", "allTokens TOKENMATCHES[cdl] \"x\""),
    Example(
      "distanceToLocation:fromLocation:(a, $place) < 10",
      "distanceToLocation:fromLocation:(a, $place) < 10"
    ),
    Example("1 == a", "1 == a"),
  ]

  static let compounds = [
    Example("TRUEPREDICATE", "TRUEPREDICATE"),
    Example("falsepredicate", "FALSEPREDICATE"),
    Example("a == 1 && b == 2", "a == 1 AND b == 2"),
    Example("a == 1 || b == 2", "a == 1 OR b == 2"),
    Example("! a == 1", "NOT a == 1"),
    Example("not (a == 1 and b == 2)", "NOT (a == 1 AND b == 2)"),
    Example("a == 1 AND b == 2 OR c == 3", "(a == 1 AND b == 2) OR c == 3"),
    Example("a == 1 AND (b == 2 OR c == 3)", "a == 1 AND (b == 2 OR c == 3)"),
    Example("(a == 1)", "a == 1"),
    Example("((a == 1) AND ((b == 2)))", "a == 1 AND b == 2"),
    Example("(a + b) > c AND (a) == b", "a + b > c AND a == b"),
    Example("((a + b)) * 2 == c", "(a + b) * 2 == c"),
    Example("(a == 1) OR (a + 1) == 2", "a == 1 OR a + 1 == 2"),
  ]

  static let modifiers = [
    Example("ANY tags.name == 'x'", "ANY tags.name == \"x\""),
    Example("some tags.name == 'x'", "ANY tags.name == \"x\""),
    Example("ALL tags.name == 'x'", "ALL tags.name == \"x\""),
    Example("NONE tags.name == 'x'", "NOT ANY tags.name == \"x\""),
    Example("ANY recordName IN %@", "ANY recordName IN {\"a\", \"b\"}") { [["a", "b"]] },
    Example("any == 1", "#any == 1"),
    Example("#any == 1", "#any == 1"),
    Example("#select == 1", "select == 1"),
  ]

  static let literals = [
    Example("a == 'it\\'s'", "a == \"it's\""),
    Example("a == \"say \\\"x\\\"\\n\"", "a == \"say \\\"x\\\"\\n\""),
    Example("a == '\\u00e9'", "a == \"é\""),
    Example("a == 0x1F", "a == 31"),
    Example("a == 0b101", "a == 5"),
    Example("a == 0o17", "a == 15"),
    Example("a == -5", "a == -5"),
    Example("a == -9223372036854775808", "a == -9223372036854775808"),
    Example("a == 1.5", "a == 1.5"),
    Example("a == .5", "a == 0.5"),
    Example("a == 1e3", "a == 1000.0"),
    Example("a == TRUE", "a == 1"),
    Example("a == no", "a == 0"),
    Example("a == NULL", "a == nil"),
    Example("a != nil", "a != nil"),
    Example("SELF == 'x'", "SELF == \"x\""),
    Example("self.name == 'x'", "name == \"x\""),
    Example("SELF IN {1, 2}", "SELF IN {1, 2}"),
    Example(
      "a > CAST(631152000.0, 'NSDate')",
      "a > CAST(631152000.000000, \"NSDate\")"
    ),
    Example("a == CAST('0.1', 'NSDecimalNumber')", "a == 0.1"),
    Example(
      "a == CAST('0.10000000000000000001', 'NSDecimalNumber')",
      "a == CAST(\"0.10000000000000000001\", \"NSDecimalNumber\")"
    ),
    Example("a == @\"x\" AND b == @'y'", "a == \"x\" AND b == \"y\""),
    Example("random() < 1 AND random:(5) < 5", "random() < 1 AND random(5) < 5"),
  ]

  static let expressions = [
    Example("tags.@count > 2", "tags.@count > 2"),
    Example("items.@sum.price >= 10", "items.@sum.price >= 10"),
    Example("items.price.@avg < 3", "items.price.@avg < 3"),
    Example("a + b - c == 1", "a + b - c == 1"),
    Example("a - (b - c) == 1", "a - (b - c) == 1"),
    Example("a + b * c / 2 == 1", "a + b * c / 2 == 1"),
    Example("2 ** 3 ** 2 == a", "2 ** 3 ** 2 == a"),
    Example("a & 4 != 0", "a & 4 != 0"),
    Example("(a | b) ^ ~c == a << 2 >> 1", "(a | b) ^ ~c == a << 2 >> 1"),
    Example("-a == 1", "0 - a == 1"),
    Example("now() > date", "now() > date"),
    Example("sum(a, b) == 3", "sum({a, b}) == 3"),
    Example("max:({a, b}) == 3", "max({a, b}) == 3"),
    Example("canonical:(name) == 'x'", "canonical(name) == \"x\""),
    Example("uppercase(name) == 'X'", "uppercase(name) == \"X\""),
    Example("length(name) > 3", "length(name) > 3"),
    Example("modulus:by:(a, 2) == 0", "modulus:by:(a, 2) == 0"),
    Example(
      "FUNCTION(name, 'uppercaseString') == 'X'",
      "FUNCTION(name, \"uppercaseString\") == \"X\""
    ),
    Example("CAST(a, 'NSString') == '1'", "CAST(a, \"NSString\") == \"1\""),
    Example("a[FIRST] == 1 AND a[last] == 2", "a[FIRST] == 1 AND a[LAST] == 2"),
    Example("a[SIZE] == 1 AND a[0] == 2", "a[SIZE] == 1 AND a[0] == 2"),
    Example("a[0].name == 'x'", "a[0].name == \"x\""),
    Example(
      "SUBQUERY(tags, $t, $t.name == 'x' AND $t.rank > 1).@count > 0",
      "SUBQUERY(tags, $t, $t.name == \"x\" AND $t.rank > 1).@count > 0"
    ),
    Example("TERNARY(a > 1, b, c) == 2", "TERNARY(a > 1, b, c) == 2"),
    Example("(a UNION b) == c", "(a UNION b) == c"),
    Example("$x == a AND $y.name == 'z'", "$x == a AND $y.name == \"z\""),
    Example("first == 1 AND size == 2 AND last == 3", "first == 1 AND size == 2 AND last == 3"),
  ]

  static let arguments = [
    Example("%K == %@", "name == \"x\"") { ["name", "x"] },
    Example("%K.name == %@", "author.name == nil") { ["author", nil] },
    Example("a.%K == 1", "a.b.c == 1") { ["b.c"] },
    Example("a == %d AND b == %ld", "a == 5 AND b == -6") { [5, Int64(-6)] },
    Example("a == %i AND b == %u AND c == %lld", "a == 1 AND b == 2 AND c == 3") { [1, 2, 3] },
    Example("a == %llu", "a == 7") { [UInt64(7)] },
    Example("a == %lud", "a == 7") { [UInt(7)] },
    Example("a == %lud AND b == 1", "a == 7 AND b == 1") { [UInt(7)] },
    Example("a == %f", "a == 1.0") { [1] },
    Example("a == %@", "a == 1.5") { [NSNumber(value: 1.5)] },
    Example("a == %@", "a == 1") { [true] },
    Example("a == %@", "a == <null>") { [NSNull()] },
    Example("a == <null> AND b == 1", "a == <null> AND b == 1"),
    Example("a IN %@", "a IN {1, <null>}") { [[1, NSNull()] as [Any]] },
    Example("a == %@", "a == nil") { [String?.none as Any] },
    Example("a == '%@'", "a == \"%@\""),
    Example("a == %@", "a == CAST(10.000000, \"NSDate\")") {
      [Date(timeIntervalSinceReferenceDate: 10)]
    },
    Example("a == %@", "a == CAST(0.1234567891, \"NSDate\")") {
      [Date(timeIntervalSinceReferenceDate: 0.1234567891)]
    },
    Example("a BETWEEN %@", "a BETWEEN {1, 2}") { [[1, 2]] },
    Example("a IN %@", "a IN {1, 2}") { [[1, 2] as (any CVarArg)] },
    Example("a == %@", "a == CAST(\"00000000-0000-0000-0000-000000000000\", \"NSUUID\")") {
      [UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)) as (any CVarArg)]
    },
    Example("a == %@", "a == CAST(10.000000, \"NSDate\")") {
      [Date(timeIntervalSinceReferenceDate: 10) as (any CVarArg)]
    },
    Example("%@ AND b == 2", "a == 1 AND b == 2") { [NSPredicate(format: "a == 1")] },
    Example("%@ > 1", "a + b > 1") { [NSExpression(format: "a + b")] },
    Example("a == %@", "a == CAST(\"0aff\", \"NSData\")") { [Data([0x0A, 0xFF])] },
  ]

  static let all =
    comparisons + compounds + modifiers + literals + expressions + arguments

  @Test("A format string is parsed, and written in a normal form", arguments: all)
  func reads(_ example: Example) throws {
    let predicate = try parsePredicate(example.format, example.arguments())
    #expect(predicate.formatString == example.written)
  }

  @Test("The written format is parsed to an equal predicate", arguments: all)
  func readsBack(_ example: Example) throws {
    let predicate = try parsePredicate(example.format, example.arguments())
    let again = try parsePredicate(predicate.formatString)
    #expect(again.formatString == predicate.formatString)
    #expect(again.isEqual(predicate))
  }

  @Test(
    "An invalid format string is refused with the position and the expected token",
    arguments: [
      ("", 0, "a key"),
      ("a", 1, "a comparison operator"),
      ("a ==", 4, "a key"),
      ("a == 1 b", 7, "AND, OR or the end"),
      ("a == 1 AND", 10, "a key"),
      ("(a == 1", 7, "\")\""),
      ("a == 'x", 7, "a closing '"),
      ("a ==[q] 1", 5, "c, d, n, l, w"),
      ("a == %@", 5, "an argument"),
      ("a == %y", 5, "%@, %K"),
      ("a IN {1, 2", 10, "\",\" or \"}\""),
      ("SUBQUERY(a, b, c == 1).@count == 1", 12, "a $variable"),
      ("frobnicate(a) == 1", 0, "a function"),
      ("a == ?", 5, "an operator"),
      ("a == 1x", 6, "a number"),
      ("a == 0xZZ", 5, "base 16"),
      ("a == b AND AND c == d", 11, "a key"),
    ]
  )
  func refuses(_ format: String, _ position: Int, _ expected: String) throws {
    let error = try #require(throws: PredicateFormatError.self) {
      _ = try parsePredicate(format, [])
    }
    #expect(error.position == position, "\(error)")
    #expect(error.expected.contains(expected), "\(error)")
    #expect(error.description.hasPrefix("Unable to parse the format string \"\(format)\""))
  }

  @Test("Too deep nesting is refused and does not overflow the stack")
  func boundsNesting() {
    let deep =
      String(repeating: "(", count: 5_000) + "a == 1" + String(repeating: ")", count: 5_000)
    #expect(throws: PredicateFormatError.self) { _ = try parsePredicate(deep, []) }
    let shallow = String(repeating: "(", count: 60) + "a == 1" + String(repeating: ")", count: 60)
    #expect(throws: Never.self) { _ = try parsePredicate(shallow, []) }
  }

  @Test("The public initializer stops the program with Apple's text and the position")
  func stops() async throws {
    let result = try await #require(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      _ = NSPredicate(format: "title ==")
    }
    let message = String(decoding: result.standardErrorContent, as: UTF8.self)
    #expect(message.contains("Unable to parse the format string \"title ==\""), "\(message)")
    #expect(message.contains("at character 9"), "\(message)")
  }
}

@Suite("FETCH in the predicate format")
struct FetchExpressionTests {
  @Test("A FETCH expression is parsed, evaluated and written")
  func evaluates() throws {
    let container = try FetchWorld.container(posts: 4)
    let context = container.newBackgroundContext()
    context.performAndWait {
      let request = NSFetchRequest<WorldPost>(entityName: "Post")
      request.predicate = NSPredicate(format: "views > 1")
      let expression = NSExpression(format: "FETCH($request, $context, NO)")
      #expect(expression.expressionType == .fetchRequest)
      #expect(expression.description == "FETCH($request, $context, NO)")
      #expect(expression == NSExpression(format: expression.description))
      let variables: NSMutableDictionary = ["request": request, "context": context]
      let found = expression.expressionValue(with: nil, context: variables)
      #expect((found as? [WorldPost])?.count == 2)
      let count = NSExpression(format: "FETCH(%@, %@, YES)", request, context)
      #expect(count.expressionValue(with: nil, context: nil) as? Int == 2)
      let many = NSPredicate(format: "FETCH($request, $context, YES) > 1")
        .withSubstitutionVariables(["request": request, "context": context])
      #expect(many.evaluate(with: nil))
      let made = NSFetchRequestExpression.expression(
        forFetch: NSExpression(forVariable: "request"),
        context: NSExpression(forVariable: "context"),
        countOnly: true
      )
      #expect(made.description == "FETCH($request, $context, YES)")
      #expect(made.expressionValue(with: nil, context: variables) as? Int == 2)
    }
  }

  @Test("An invalid count flag is an error with its position")
  func malformed() {
    #expect(throws: PredicateFormatError.self) {
      try parsePredicate("FETCH($request, $context) == 1")
    }
  }
}

@Suite("Archived expressions")
struct ArchivedExpressionTests {
  @Test(
    "An expression can be archived and read again",
    arguments: [
      "views * 2 + 1", "sum:(price)", "SUBQUERY(tags, $t, $t.rank > 1).@count", "{1, \"two\"}",
      "TERNARY(a > 1, b, c)", "FETCH($request, $context, NO)", "$name", "SELF",
    ]
  )
  func roundTrip(_ format: String) throws {
    let expression = NSExpression(format: format)
    let data = try NSKeyedArchiver.archivedData(
      withRootObject: expression,
      requiringSecureCoding: true
    )
    let again = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSExpression.self, from: data)
    #expect(again == expression)
    #expect(again?.expressionType == expression.expressionType)
  }

  @Test("Archived constants keep their types")
  func constants() throws {
    let values: [Any] = [
      Date(timeIntervalSinceReferenceDate: 7.25), Data([1, 2]), NSDecimalNumber(string: "0.1"), "x",
    ]
    for value in values {
      let expression = NSExpression(forConstantValue: value)
      let data = try NSKeyedArchiver.archivedData(
        withRootObject: expression,
        requiringSecureCoding: true
      )
      let again = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSExpression.self, from: data)
      #expect(again == expression)
    }
  }

  @Test("An operator on the evaluated object is written as it was parsed")
  func collectionOperator() {
    let expression = NSExpression(format: "@count")
    #expect(expression.description == "@count")
    #expect(NSExpression(format: expression.description) == expression)
  }

  @Test("A Boolean in a format is a number")
  func truth() {
    #expect(NSExpression(format: "true").constantValue as? Int == 1)
    #expect(NSExpression(format: "NO").constantValue as? Bool == false)
  }
}
