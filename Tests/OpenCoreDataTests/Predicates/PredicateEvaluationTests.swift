import Foundation
import OpenCoreData
import Testing

/// The results of predicates on dictionaries.
@Suite("Evaluating predicates")
struct PredicateEvaluationTests {
  static func post() -> [String: Any] {
    [
      "title": "Éclair",
      "views": 10,
      "score": 2.5,
      "flag": true,
      "date": Date(timeIntervalSinceReferenceDate: 100),
      "link": URL(fileURLWithPath: "/x"),
      "zip": "7",
      "missing": NSNull(),
      "author": ["name": "Ada", "city": NSNull()] as [String: Any],
      "numbers": [3, 1, 2],
      "tags": [
        ["name": "red", "rank": 1], ["name": "blue", "rank": 2],
        ["name": NSNull(), "rank": 3],
      ] as [[String: Any]],
      "none": [Any](),
    ]
  }

  static let truths = [
    // Values
    "title == 'Éclair'", "title != 'eclair'", "title ==[cd] 'eclair'", "views == 10",
    "views == 10.0", "views > 9 AND views <= 10", "score BETWEEN {2, 3}", "flag == YES",
    "flag == 1", "views IN {1, 10}", "NOT views IN {1, 2}", "date == CAST(100, 'NSDate')",
    "date < now()", "author.name == 'Ada'", "SELF.views == 10",
    // Strings
    "title BEGINSWITH 'É'", "NOT title BEGINSWITH 'e'", "title BEGINSWITH[cd] 'e'",
    "title ENDSWITH 'air'", "title CONTAINS 'cla'", "title LIKE '?cl*r'",
    "title LIKE[cd] 'ECLAIR'", "title MATCHES '.cl.*'", "NOT title MATCHES 'cl'",
    "title MATCHES[c] '.CLAIR'", "title CONTAINS ''", "'cla' IN title", "'a.b' LIKE 'a.b'",
    "NOT 'axb' LIKE 'a.b'", "'a*b' LIKE 'a\\\\*b'", "NOT 'axb' LIKE 'a\\\\*b'",
    "'one two' CONTAINS[w] 'two'", "NOT 'one two' CONTAINS[w] 'tw'", "'a' < 'b'", "'B' < 'a'",
    "'a' <[c] 'B'", "'é' <[l] 'f'",
    // Nil
    "missing == nil", "unknown == NULL", "missing != 5", "NOT missing == 5", "NOT missing < 5",
    "NOT missing > 5", "NOT missing <= nil", "NOT missing BEGINSWITH 'x'", "title != nil",
    "author.city == nil", "missing.name == nil", "missing IN {nil}", "NOT missing IN {1}",
    "NOT missing BETWEEN {1, 2}", "missing + 1 == nil",
    // Kinds
    "NOT views == 'ten'", "views != 'ten'", "views == '10'", "views < '10.5'", "NOT title < 5",
    "title > 5", "'7' == 7", "zip == 7", "7 == zip", "zip IN {1, 7}", "NOT zip IN {1, 2}",
    "NOT zip IN {70}", "zip != 70", "ANY zip IN {7, 8}",
    // Collections
    "ANY tags.name == 'red'", "NONE tags.name == 'green'", "ANY tags.name == nil",
    "NOT ALL tags.name == 'red'", "ALL tags.rank > 0", "ALL none.rank > 0",
    "NOT ANY none.rank > 0", "ANY title IN {'Éclair', 'x'}", "ALL title == 'Éclair'",
    "tags.name CONTAINS 'blue'", "'blue' IN tags.name", "numbers CONTAINS 3",
    "tags.@count == 3", "none.@count == 0", "missing.@count == 0", "tags.@sum.rank == 6",
    "tags.rank.@avg == 2", "tags.@max.rank == 3", "tags.@min.name == 'blue'",
    "none.@sum.rank == 0", "none.@max.rank == nil",
    "SUBQUERY(tags, $t, $t.rank > 1).@count == 2",
    "SUBQUERY(tags, $t, $t.rank > score).@count == 1",
    "ANY SUBQUERY(tags, $t, $t.rank == 2).name == 'blue'",
    "numbers[FIRST] == 3", "numbers[LAST] == 2", "numbers[SIZE] == 3", "numbers[1] == 1",
    // Arithmetic
    "views + 5 == 15", "views - 5 * 2 == 0", "views / 4 == 2", "score / 2 == 1.25",
    "2 ** 10 == 1024", "views & 2 == 2", "views | 1 == 11", "views ^ 3 == 9", "~views == -11",
    "1 << 4 == 16", "256 >> 4 == 16", "-views == -10", "views / 0 == nil",
    "date - CAST(40, 'NSDate') == 60", "date + 60 == CAST(160, 'NSDate')",
    // Functions
    "sum(views, 5) == 15", "max(numbers) == 3", "min({views, 3}) == 3", "average(numbers) == 2",
    "median(numbers) == 2", "count(numbers) == 3", "abs(0 - views) == 10", "sqrt(16) == 4",
    "floor(score) == 2", "ceiling(score) == 3", "uppercase(title) == 'ÉCLAIR'",
    "lowercase(title) == 'éclair'", "canonical(title) == 'eclair'", "length(title) == 6",
    "modulus:by:(views, 3) == 1", "CAST('12', 'NSNumber') == 12", "CAST(views, 'NSString') == '10'",
    "FUNCTION(title, 'lowercaseString') == 'éclair'",
    "FUNCTION(date, 'timeIntervalSinceDate:', CAST(0, 'NSDate')) == 100",
    "TERNARY(views > 5, 'many', 'few') == 'many'", "(numbers MINUS {1}) == {2, 3}",
    "(numbers INTERSECT {1, 9}) == {1}", "(numbers UNION {9}).@count == 4",
  ]

  @Test("A predicate is true of the sample dictionary", arguments: truths)
  func holds(_ format: String) throws {
    #expect(NSPredicate(format: format).evaluate(with: Self.post()))
    #expect(!NSPredicate(format: "NOT (\(format))").evaluate(with: Self.post()))
  }

  @Test("Variables are substituted during evaluation, or before")
  func variables() {
    let predicate = NSPredicate(format: "views > $LIMIT AND author.name == $WHO.name")
    let bindings: [String: Any] = ["LIMIT": 5, "WHO": ["name": "Ada"]]
    #expect(predicate.evaluate(with: Self.post(), substitutionVariables: bindings))
    let bound = NSPredicate(format: "views > $LIMIT").withSubstitutionVariables(["LIMIT": 5])
    #expect(bound.formatString == "views > 5")
    #expect(bound.evaluate(with: Self.post()))
  }

  @Test("Foundation's compounds, constants and blocks are evaluated")
  func foundationPredicates() {
    let views = NSPredicate(format: "views == 10")
    let compound = NSCompoundPredicate(andPredicateWithSubpredicates: [
      views,
      NSCompoundPredicate(orPredicateWithSubpredicates: [
        NSPredicate(value: false), NSPredicate(format: "flag == YES"),
      ]),
      NSCompoundPredicate(notPredicateWithSubpredicate: NSPredicate(value: false)),
    ])
    #expect(
      compound.formatString
        == "views == 10 AND (FALSEPREDICATE OR flag == 1) AND NOT FALSEPREDICATE"
    )
    #expect(compound.evaluate(with: Self.post()))
    let block = NSPredicate { object, _ in (object as? [String: Any])?["views"] as? Int == 10 }
    let both = NSCompoundPredicate(type: .and, subpredicates: [views, block])
    #expect(both.evaluate(with: Self.post()))
    #expect(NSPredicate(format: "a == 1 AND b == 2") is NSCompoundPredicate)
  }

  @Test("A comparison created from expressions equals one parsed from a format")
  func comparisonPredicate() throws {
    let made = NSComparisonPredicate(
      leftExpression: NSExpression(forKeyPath: "tags.name"),
      rightExpression: NSExpression(forConstantValue: "RED"),
      modifier: .any,
      type: .equalTo,
      options: [.caseInsensitive]
    )
    #expect(made.predicateFormat == "ANY tags.name ==[c] \"RED\"")
    #expect(made.evaluate(with: Self.post()))
    let read = try #require(
      NSPredicate(format: made.predicateFormat) as? OpenCoreData.NSComparisonPredicate
    )
    #expect(read.isEqual(made))
    #expect(read.leftExpression.keyPath == "tags.name")
    #expect(read.rightExpression.constantValue as? String == "RED")
    #expect(read.comparisonPredicateModifier == .any)
    #expect(read.predicateOperatorType == .equalTo)
    #expect(read.options == .caseInsensitive)
  }

  @Test("An expression returns its value in the classes of key-value coding")
  func expressionValues() {
    let sum = NSExpression(format: "views + %@", 2)
    #expect(sum.expressionValue(with: Self.post(), context: nil) as? NSNumber == 12)
    #expect(sum.expressionType == .function)
    #expect(sum.function == "add:to:")
    let variable = NSExpression(forVariable: "x")
    #expect(variable.expressionValue(with: nil, context: ["x": "y"]) as? String == "y")
    let block = NSExpression(block: { object, _, _ in "\(object ?? "")!" }, arguments: nil)
    #expect(block.expressionValue(with: "a", context: nil) as? String == "a!")
    #expect(
      NSExpression(forFunction: "max:", arguments: [NSExpression(forKeyPath: "numbers")])
        .expressionValue(with: Self.post(), context: nil) as? NSNumber == 3
    )
  }

  @Test("A predicate filters the elements of arrays")
  func filtersArrays() {
    let names = NSArray(array: ["Ada", "Bob", "Eve"])
    let kept = names.filtered(using: NSPredicate(format: "SELF CONTAINS 'b' OR SELF == %@", "Eve"))
    #expect(kept as? [String] == ["Bob", "Eve"])
  }
}
