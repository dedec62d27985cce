import Effects
import Foundation
import OpenCoreData

/// Generates random predicates for the posts of a `SampleLibrary`.
struct PredicateGenerator {
  let random: SeededRandomness
  let library: SampleLibrary

  private func pick<Value>(_ values: [Value]) -> Value {
    values[Int(random.next() % UInt64(values.count))]
  }

  private func chance(_ one: UInt64) -> Bool { random.next() % one == 0 }

  func predicate(depth: Int = 0) -> PredicateTree {
    guard depth < 3, chance(2) else { return comparison(on: .evaluatedObject, depth: depth) }
    let parts = (0..<(1 + Int(random.next() % 3))).map { _ in predicate(depth: depth + 1) }
    switch random.next() % 3 {
    case 0: return .and(parts)
    case 1: return .or(parts)
    default: return .not(parts[0])
    }
  }

  private func comparison(on base: ExpressionTree, depth: Int) -> PredicateTree {
    switch random.next() % 14 {
    case 12: return longMembership(on: base)
    case 13: return casts(on: base)
    case 0, 1, 2: return numbers(on: base)
    case 3, 4: return texts(on: base)
    case 5: return dates(on: base)
    case 6: return objects()
    case 7, 8, 9: return toMany(depth: depth)
    case 10: return mixed(on: base)
    default: return .constant(chance(2))
    }
  }

  // MARK: Kinds

  private static let numberKinds: [ComparisonKind] = [
    .equal, .notEqual, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual,
  ]

  private func number(_ base: ExpressionTree, depth: Int = 0) -> ExpressionTree {
    switch random.next() % (depth < 2 ? 10 : 5) {
    case 0, 1, 2:
      return .keyPath(base, [pick(["views", "likes", "score", "price", "flag"])])
    case 3: return .keyPath(base, ["author", "age"])
    case 4:
      return pick([
        .value(Int64(random.next() % 12) - 3), .value(Double(random.next() % 16) / 4),
        .value(nil), .value(Decimal(Double(random.next() % 8) / 4)), extreme(),
      ])
    case 5, 6:
      let function = pick([
        "add:to:", "from:subtract:", "multiply:by:", "divide:by:", "bitwiseAnd:with:",
        "bitwiseOr:with:", "bitwiseXor:with:", "leftshift:by:", "rightshift:by:", "modulus:by:",
        "raise:toPower:",
      ])
      return .function(function, [number(base, depth: depth + 1), number(base, depth: depth + 1)])
    case 7:
      return .function(
        pick([
          "abs:", "floor:", "ceiling:", "trunc:", "onesComplement:", "sqrt:", "ln:", "log:", "exp:",
        ]),
        [number(base, depth: depth + 1)]
      )
    case 8:
      return .function(
        pick(["sum:", "max:", "min:", "average:", "count:", "median:"]),
        [.aggregate([number(base, depth: depth + 1), number(base, depth: depth + 1)])]
      )
    default:
      return .conditional(
        numbers(on: base),
        number(base, depth: depth + 1),
        number(base, depth: depth + 1)
      )
    }
  }

  /// Numbers at the ends of their ranges, where integers overflow and doubles round.
  private func extreme() -> ExpressionTree {
    pick([
      .value(0), .value(Int64.max), .value(Int64.min), .value(Int64(1) << 53 + 1),
      .value(Double.infinity), .value(-Double.infinity), .value(Double.nan), .value(-0.0),
      .value(1e300), .value(9_223_372_036_854_775_807.0), .value(0.1),
      .value(Decimal(string: "0.1")), .value(Decimal(string: "12345678901234567890.5")),
    ])
  }

  /// More members than a statement takes as single parameters.
  private func longList(_ members: [Any?]) -> ExpressionTree {
    let filler: [Any] = (0..<600).map { Int64(1000 + $0) }
    return .value(filler + members.map { $0 ?? NSNull() })
  }

  private func longMembership(on base: ExpressionTree) -> PredicateTree {
    let kind = pick([ComparisonKind.in])
    switch random.next() % 6 {
    case 0:
      return .comparison(
        ComparisonTree(
          number(base, depth: 2),
          kind,
          longList([Int64(2), 0.25, Decimal(string: "1.5"), chance(2) ? nil : 3]),
          modifier: modifier()
        )
      )
    case 1:
      return .comparison(
        ComparisonTree(
          text(base),
          kind,
          longList([pick(SampleLibrary.texts), pick(SampleLibrary.texts), "it's \"q\"\\\n\u{0}x"]),
          options: options()
        )
      )
    case 2:
      let dates = [0.5, 2, 4.5].map { Date(timeIntervalSinceReferenceDate: $0) }
      return .comparison(ComparisonTree(.keyPath(base, ["date"]), kind, longList(dates)))
    case 3:
      let uuid = UUID(uuid: (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
      return .comparison(ComparisonTree(.keyPath(base, ["uuid"]), kind, longList([uuid])))
    case 4:
      return .comparison(
        ComparisonTree(.evaluatedObject, kind, longList(Array(library.posts.prefix(20))))
      )
    default:
      return .comparison(
        ComparisonTree(
          .keyPath("tags.rank"),
          kind,
          longList([Int64(1), Int64(2)]),
          modifier: pick([.any, .all])
        )
      )
    }
  }

  private func casts(on base: ExpressionTree) -> PredicateTree {
    let type = pick(["NSNumber", "NSString", "NSDecimalNumber", "NSDate"])
    let cast = ExpressionTree.function(
      "castObject:toType:",
      // The parser folds the cast of a constant, which would then be written as its result.
      [.keyPath(base, [pick(["title", "views", "score", "price", "date"])]), .value(type)]
    )
    return .comparison(
      ComparisonTree(cast, pick(Self.numberKinds), chance(2) ? text(base) : number(base, depth: 2))
    )
  }

  private func numbers(on base: ExpressionTree) -> PredicateTree {
    let left = number(base)
    switch random.next() % 5 {
    case 0:
      let members = (0..<Int(random.next() % 4)).map { _ in number(base, depth: 2) }
      return .comparison(ComparisonTree(left, .in, .aggregate(members), modifier: modifier()))
    case 1:
      let bounds = [number(base, depth: 2), number(base, depth: 2)]
      return .comparison(ComparisonTree(left, .between, .aggregate(bounds), modifier: modifier()))
    default:
      return .comparison(
        ComparisonTree(left, pick(Self.numberKinds), number(base), modifier: modifier())
      )
    }
  }

  private func modifier() -> ComparisonModifier {
    chance(6) ? pick([.any, .all]) : .direct
  }

  private func options() -> StringComparisonOptions {
    pick([
      [], [], .caseInsensitive, [.caseInsensitive, .diacriticInsensitive], .diacriticInsensitive,
      .normalized, .localeSensitive, .wholeWord,
    ])
  }

  private func text(_ base: ExpressionTree) -> ExpressionTree {
    switch random.next() % 8 {
    case 0, 1, 2: return .keyPath(base, [pick(["title", "subtitle", "link"])])
    case 3: return .keyPath(base, ["author", pick(["name", "city"])])
    case 4:
      return .function(
        pick(["uppercase:", "lowercase:", "canonical:"]),
        [.keyPath(base, ["title"])]
      )
    default: return .value(pick(SampleLibrary.texts))
    }
  }

  private static let textKinds: [ComparisonKind] = [
    .equal, .notEqual, .lessThan, .greaterThanOrEqual, .beginsWith, .endsWith, .contains, .like,
    .beginsWith, .contains, .in,
  ]

  private func texts(on base: ExpressionTree) -> PredicateTree {
    let left = text(base)
    switch random.next() % 6 {
    case 0:
      let pattern = pick(["a.*", ".", "[a-z]+", "(a|é)b?", ".*\\d+", "\\w{2}", "(?i)AB.?", "^é$"])
      return .comparison(
        ComparisonTree(left, .matches, .value(pattern), modifier: modifier(), options: options())
      )
    case 1:
      let list = (0..<Int(random.next() % 5)).map { _ in pick(SampleLibrary.texts) as Any? }
      let values = list.map { $0 ?? NSNull() }
      return .comparison(
        ComparisonTree(left, .in, .value(values), modifier: modifier(), options: options())
      )
    case 2:
      return .comparison(
        ComparisonTree(
          left,
          .like,
          .value(pick(["a*", "?", "*b", "é?", "a\\*b", "*"])),
          options: options()
        )
      )
    case 3:
      return .comparison(
        ComparisonTree(.function("length:", [left]), pick(Self.numberKinds), number(base))
      )
    default:
      return .comparison(
        ComparisonTree(
          left,
          pick(Self.textKinds),
          text(base),
          modifier: modifier(),
          options: options()
        )
      )
    }
  }

  private func dates(on base: ExpressionTree) -> PredicateTree {
    let date = ExpressionTree.keyPath(base, ["date"])
    let constant = ExpressionTree.value(
      Date(timeIntervalSinceReferenceDate: Double(random.next() % 10) / 2)
    )
    switch random.next() % 4 {
    case 0:
      return .comparison(
        ComparisonTree(
          .function("add:to:", [date, number(base)]),
          pick(Self.numberKinds),
          constant
        )
      )
    case 1:
      return .comparison(
        ComparisonTree(
          .function("from:subtract:", [date, constant]),
          pick(Self.numberKinds),
          number(base)
        )
      )
    case 2:
      return .comparison(ComparisonTree(date, .lessThan, .function("now", [])))
    default:
      return .comparison(
        ComparisonTree(date, pick(Self.numberKinds), constant, modifier: modifier())
      )
    }
  }

  /// Values of types that never compare.
  private func mixed(on base: ExpressionTree) -> PredicateTree {
    let sides = [
      number(base, depth: 2), text(base), .keyPath(base, ["date"]), .keyPath(base, ["uuid"]),
      .value(UUID(uuid: (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))), .value(nil),
      .keyPath(base, ["author"]), .value("5"),
    ]
    return .comparison(
      ComparisonTree(
        pick(sides),
        pick(Self.numberKinds + [.contains, .beginsWith, .like]),
        pick(sides),
        modifier: modifier()
      )
    )
  }

  private func objects() -> PredicateTree {
    let stranger = SampleObject("Post", -1, [:])
    switch random.next() % 6 {
    case 0:
      return .comparison(
        ComparisonTree(.evaluatedObject, pick([.equal, .notEqual]), .value(pick(library.posts)))
      )
    case 1:
      let some = (0..<4).map { _ in pick(library.posts) } + [stranger]
      return .comparison(ComparisonTree(.evaluatedObject, .in, .value(some)))
    case 2:
      return .comparison(
        ComparisonTree(
          .keyPath("author"),
          pick([.equal, .notEqual]),
          .value(pick(library.authors + [stranger, library.posts[0]]))
        )
      )
    case 3:
      return .comparison(
        ComparisonTree(.keyPath("author"), .in, .value([pick(library.authors), stranger]))
      )
    case 4:
      return .comparison(
        ComparisonTree(
          .keyPath("tags"),
          .contains,
          .value(pick(library.tags + [stranger]))
        )
      )
    default:
      return .comparison(
        ComparisonTree(.keyPath("author"), pick([.equal, .notEqual]), .value(nil))
      )
    }
  }

  // MARK: To-many

  private func toMany(depth: Int) -> PredicateTree {
    let modifier = pick([ComparisonModifier.any, .all])
    let operation = pick(["@sum", "@avg", "@min", "@max"])
    switch random.next() % 9 {
    case 0:
      return .comparison(
        ComparisonTree(
          .keyPath(pick(["tags.rank", "author.posts.views", "tags.posts.likes"])),
          pick(Self.numberKinds),
          number(.evaluatedObject, depth: 2),
          modifier: modifier
        )
      )
    case 1:
      return .comparison(
        ComparisonTree(
          .keyPath(pick(["tags.name", "author.posts.title", "tags.posts.author.name"])),
          pick(Self.textKinds),
          text(.evaluatedObject),
          modifier: modifier,
          options: options()
        )
      )
    case 2:
      return .comparison(
        ComparisonTree(
          .keyPath(pick(["tags.@count", "author.posts.@count", "tags.posts.@count"])),
          pick(Self.numberKinds),
          number(.evaluatedObject, depth: 2)
        )
      )
    case 3:
      return .comparison(
        ComparisonTree(
          .keyPath(pick(["tags.\(operation).rank", "tags.rank.\(operation)"])),
          pick(Self.numberKinds),
          number(.evaluatedObject, depth: 2)
        )
      )
    case 4:
      return .comparison(
        ComparisonTree(text(.evaluatedObject), .in, .keyPath("tags.name"), options: options())
      )
    case 5 where depth < 3:
      return .comparison(
        ComparisonTree(
          .keyPath(
            .subquery(.keyPath("author.posts"), "p", comparison(on: .variable("p"), depth: 3)),
            ["@count"]
          ),
          pick(Self.numberKinds),
          .value(Int64(random.next() % 4))
        )
      )
    case 6:
      return .comparison(
        ComparisonTree(
          .keyPath(pick(["tags", "tags.posts.author"])),
          pick([.equal, .in, .notEqual]),
          .value(pick([pick(library.tags) as Any, [pick(library.tags), pick(library.authors)]])),
          modifier: modifier
        )
      )
    case 7:
      return .comparison(
        ComparisonTree(
          .function(pick(["sum:", "max:", "count:", "average:"]), [.keyPath("tags.rank")]),
          pick(Self.numberKinds),
          number(.evaluatedObject, depth: 2)
        )
      )
    default:
      return .comparison(
        ComparisonTree(
          .keyPath(pick(["tags.name", "tags.posts.author.city"])),
          .contains,
          text(.evaluatedObject),
          options: options()
        )
      )
    }
  }
}
