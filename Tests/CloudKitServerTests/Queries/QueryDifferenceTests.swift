import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import Testing

/// Random records and random queries, evaluated by the server and by a naive evaluator without
/// indexes.
@Suite("Queries against a naive evaluator", .everyEngine)
struct QueryDifferenceTests {
  static let schema = """
    DEFINE SCHEMA RECORD TYPE Thing (
      "___recordID" REFERENCE QUERYABLE SORTABLE, "___createTime" TIMESTAMP QUERYABLE SORTABLE,
      s STRING QUERYABLE SEARCHABLE SORTABLE, i INT64 QUERYABLE SORTABLE,
      d DOUBLE QUERYABLE SORTABLE, t TIMESTAMP QUERYABLE SORTABLE, b BYTES QUERYABLE SORTABLE,
      n NUMBER QUERYABLE SORTABLE, r REFERENCE QUERYABLE, p LOCATION QUERYABLE SORTABLE,
      ls LIST<STRING> QUERYABLE SEARCHABLE SORTABLE, li LIST<INT64> QUERYABLE SORTABLE,
      GRANT READ TO "_world", GRANT CREATE TO "_icloud", GRANT WRITE TO "_creator");
    """

  @Test("Every query returns the right records, in order, page by page", arguments: 0..<3)
  func difference(round: Int) async throws {
    let seed = TestSeed.value &+ UInt64(round)
    var dice = Dice(seed: seed)
    let server = try await TestServer { limits in
      // Small, so that every way to run a query is used.
      limits.recordsScanned = [7, 20, 10_000][round % 3]
      limits.recordsSortedInMemory = [0, 4, 1000][dice.below(3)]
    }
    _ = try await server.service.schemas.importSchema(Self.schema, container: TestServer.container)
    let person = try await server.person()
    var things: [Thing] = []
    for zone in ["notes", "other"] {
      try await person.makeZone(zone)
      for number in 0..<30 {
        things.append(Thing(zone: zone, name: "\(dice.pick(["a", "B", "é"]))\(number)", &dice))
      }
    }
    // Queries before, between and after the saves: indexes are created and then maintained.
    for batch in 0..<3 {
      let part = things.enumerated().filter { $0.offset % 3 == batch }.map(\.element)
      for zone in ["notes", "other"] {
        let operations = part.filter { $0.zone == zone }.map(\.operation)
        let results = try await person.modify(operations, zone: ZoneID(zoneName: zone))
        #expect(results.allSatisfy { $0.item != nil }, "seed \(seed)")
      }
      let there = things.enumerated().filter { $0.offset % 3 <= batch }.map(\.element)
      for _ in 0..<12 { try await check(Question(&dice), there, person, seed, &dice) }
    }
    // Changed and deleted records leave no index entries.
    for index in things.indices.reversed() where dice.below(3) == 0 {
      let zone = ZoneID(zoneName: things[index].zone)
      if dice.below(2) == 0 {
        try await person.save(.forceDelete, things[index].name, zone: zone)
        things.remove(at: index)
      } else {
        things[index] = Thing(zone: things[index].zone, name: things[index].name, &dice)
        let results = try await person.modify([things[index].operation], zone: zone)
        #expect(results[0].item != nil)
      }
    }
    for _ in 0..<24 { try await check(Question(&dice), things, person, seed, &dice) }
  }

  private func check(
    _ question: Question,
    _ things: [Thing],
    _ person: Person,
    _ seed: UInt64,
    _ dice: inout Dice
  ) async throws {
    var request = QueryRecordsRequest(query: question.query)
    if question.isWide { request.zoneWide = true } else { request.zoneID = TestServer.zone }
    request.resultsLimit = 1 + dice.below(12)
    var found: [String] = []
    var pages = 0
    repeat {
      let page: QueryRecordsResponse = try await person.call(.queryRecords, request)
      found += page.records.compactMap(\.item).map {
        "\($0.zoneID?.zoneName ?? "")/\($0.recordName ?? "")"
      }
      #expect(page.records.count <= request.resultsLimit ?? 0)
      request.continuationMarker = page.continuationMarker
      pages += 1
    } while request.continuationMarker != nil && pages < 1000
    let matching = things.filter { thing in
      (question.isWide || thing.zone == "notes") && question.filters.allSatisfy { $0.holds(thing) }
    }
    let comment: Comment = "seed \(seed): \(question)"
    #expect(found.sorted() == matching.map(\.id).sorted(), comment)
    let byID = Dictionary(uniqueKeysWithValues: things.map { ($0.id, $0) })
    let ordered = found.compactMap { byID[$0] }
    for (left, right) in zip(ordered, ordered.dropFirst()) {
      #expect(question.isInOrder(left, right), comment)
    }
  }
}

/// Random choices that a seed reproduces.
struct Dice {
  let random: SeededRandomness

  init(seed: UInt64) { random = SeededRandomness(seed: seed) }

  func below(_ count: Int) -> Int { Int(random.next() % UInt64(max(count, 1))) }
  func pick<Element>(_ choices: [Element]) -> Element { choices[below(choices.count)] }
  func some<Element>(_ choices: [Element]) -> [Element] {
    (0..<below(4)).map { _ in pick(choices) }
  }
}

/// A record of the naive evaluator.
private struct Thing {
  var zone: String
  var name: String
  var fields: [String: FieldContent] = [:]

  var id: String { "\(zone)/\(name)" }

  var operation: RecordOperation {
    .make(.forceReplace, name, fields, recordType: "Thing")
  }

  static let strings = [
    "", "a", "A", "ab", "abc", "b", "é", "e\u{301}", "the red fox", "Red FÓX", "fox", "z",
    String(repeating: "long", count: 100) + "1", String(repeating: "long", count: 100) + "2",
  ]
  static let integers: [Int64] = [.min, -1, 0, 1, 2, 3, (1 << 53) + 1, .max]
  static let doubles = [-1.5, 0, 0.5, 1, 2, 9_007_199_254_740_992, 1e300]
  static let blobs = [Data(), Data([0]), Data([0, 1]), Data([255])]
  static let places = [(0.0, 0.0), (0.5, 0.0), (0.0, 179.9), (0.1, -179.9), (89.9, 10), (-45, 90)]
    .map { LocationValue(latitude: $0.0, longitude: $0.1) }
  static let names = ["x", "y", "z"]

  static func value(of field: String, _ dice: inout Dice) -> FieldContent {
    switch field {
    case "s": .string(dice.pick(strings))
    case "i": .int64(dice.pick(integers))
    case "d": .double(dice.pick(doubles))
    case "t": .timestamp(TimestampValue(milliseconds: dice.pick(integers)))
    case "b": .bytes(dice.pick(blobs))
    case "n": dice.below(2) == 0 ? .int64(dice.pick(integers)) : .double(dice.pick(doubles))
    case "r": .reference(ReferenceValue(recordName: dice.pick(names), action: ReferenceAction.none))
    case "p": .location(dice.pick(places))
    case "ls": .stringList(dice.some(strings))
    default: .int64List(dice.some(integers))
    }
  }

  init(zone: String, name: String, _ dice: inout Dice) {
    self.zone = zone
    // Names are ASCII; the letter distinguishes upper and lower case.
    self.name = name.replacing("é", with: "e")
    for field in ["s", "i", "d", "t", "b", "n", "r", "p", "ls", "li"] where dice.below(5) > 0 {
      fields[field] = Self.value(of: field, &dice)
    }
  }

  /// The values of a field: none, one, or one for each element.
  func values(_ field: String) -> [Plain] {
    field == "___recordID" ? [.text(name)] : fields[field].map(Plain.values) ?? []
  }
}

/// A value in Swift's own types, compared with Swift's operators.
private enum Plain {
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob(Data)
  case place(LocationValue)

  static func values(_ content: FieldContent) -> [Plain] {
    switch content {
    case .string(let value): [.text(value)]
    case .int64(let value): [.integer(value)]
    case .timestamp(let value): [.integer(value.milliseconds)]
    case .double(let value): [.real(value)]
    case .bytes(let value): [.blob(value)]
    case .reference(let value): [.text(value.recordName)]
    case .location(let value): [.place(value)]
    case .stringList(let values): values.map { .text($0) }
    case .int64List(let values): values.map { .integer($0) }
    case .referenceList(let values): values.map { .text($0.recordName) }
    case .doubleList(let values): values.map { .real($0) }
    case .timestampList(let values): values.map { .integer($0.milliseconds) }
    case .bytesList(let values): values.map { .blob($0) }
    case .locationList(let values): values.map { .place($0) }
    default: []
    }
  }

  static func == (left: Plain, right: Plain) -> Bool {
    if case (.place(let left), .place(let right)) = (left, right) {
      return left.latitude == right.latitude && left.longitude == right.longitude
    }
    return !(left < right) && !(right < left)
  }

  static func < (left: Plain, right: Plain) -> Bool {
    switch (left, right) {
    case (.integer(let left), .integer(let right)): left < right
    case (.integer(let left), .real(let right)): ExactNumbers.isLess(left, right)
    case (.real(let left), .integer(let right)): ExactNumbers.isLess(left, right)
    case (.real(let left), .real(let right)): left < right
    case (.text(let left), .text(let right)):
      Array(left.utf8).lexicographicallyPrecedes(Array(right.utf8))
    case (.blob(let left), .blob(let right)): left.lexicographicallyPrecedes(right)
    default: false
    }
  }

  /// As an index orders it: long text is truncated.
  var cut: Plain {
    guard case .text(let text) = self, text.utf8.count > 256 else { return self }
    return .text(String(decoding: text.utf8.prefix(256), as: UTF8.self))
  }
}

/// A filter with its meaning.
private struct Condition: CustomStringConvertible {
  var filter: QueryFilter

  var description: String {
    "\(filter.fieldName ?? "*") \(filter.comparator.rawValue) \(filter.fieldValue?.content as Any)"
  }

  static let scalars: [QueryComparator] = [.equals, .notEquals, .in, .notIn]
  static let ranges: [QueryComparator] = [
    .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals,
  ]
  static let lists: [QueryComparator] = [
    .listContains, .notListContains, .listContainsAny, .notListContainsAny, .listContainsAll,
    .notListContainsAll,
  ]

  init(_ dice: inout Dice) {
    let field = dice.pick(["s", "i", "d", "t", "b", "n", "r", "p", "ls", "li", "___recordID", "*"])
    let comparator: QueryComparator
    switch field {
    case "*": comparator = dice.pick([.containsAllTokens, .containsAnyTokens])
    case "s":
      comparator = dice.pick(
        Self.scalars + Self.ranges + [
          .beginsWith, .notBeginsWith, .containsAllTokens, .containsAnyTokens,
        ]
      )
    case "ls":
      comparator = dice.pick(
        Self.lists + [
          .listMemberBeginsWith, .notListMemberBeginsWith, .containsAllTokens, .containsAnyTokens,
        ]
      )
    case "li": comparator = dice.pick(Self.lists)
    case "r", "___recordID": comparator = dice.pick(Self.scalars)
    case "p": comparator = dice.pick(Self.scalars + [.near, .near, .near])
    default: comparator = dice.pick(Self.scalars + Self.ranges)
    }
    filter = QueryFilter(comparator: comparator, fieldName: field == "*" ? nil : field)
    filter.fieldValue = FieldValue(Self.operand(field, comparator, &dice))
    if comparator == .near { filter.distance = dice.pick([0, 30_000, 200_000, 30_000_000]) }
  }

  private static func operand(
    _ field: String,
    _ comparator: QueryComparator,
    _ dice: inout Dice
  ) -> FieldContent {
    switch comparator {
    case .containsAllTokens, .containsAnyTokens:
      return .string(dice.pick(["fox", "FOX the", "the", "red fox", "RÉD a b", "nothing"]))
    case .in, .notIn, .listContainsAny, .notListContainsAny, .listContainsAll,
      .notListContainsAll:
      let names = ["a1", "B2", "e3", "a4", "B20"]
      switch field {
      case "i", "li", "n": return .int64List(dice.some(Thing.integers))
      case "d": return .doubleList(dice.some(Thing.doubles))
      case "t":
        return .timestampList(
          dice.some(Thing.integers).map { TimestampValue(milliseconds: $0) }
        )
      case "b": return .bytesList(dice.some(Thing.blobs))
      case "r": return .stringList(dice.some(Thing.names))
      case "p": return .locationList(dice.some(Thing.places))
      case "___recordID":
        return .referenceList(dice.some(names).map { ReferenceValue(recordName: $0) })
      default: return .stringList(dice.some(Thing.strings))
      }
    default:
      switch field {
      case "ls": return .string(dice.pick(Thing.strings))
      case "li": return .int64(dice.pick(Thing.integers))
      case "___recordID": return .string(dice.pick(["a1", "B2", "e3"]))
      default: return Thing.value(of: field, &dice)
      }
    }
  }

  func holds(_ thing: Thing) -> Bool {
    guard let content = filter.fieldValue?.content else { return false }
    let operands = Plain.values(content)
    let values = filter.fieldName.map(thing.values) ?? []
    func isAny(_ value: Plain) -> Bool { operands.contains { $0 == value } }
    func begins(_ value: Plain) -> Bool {
      guard case .text(let text) = value, case .text(let prefix)? = operands.first else {
        return false
      }
      return Array(text.utf8).starts(with: Array(prefix.utf8))
    }
    func has(_ operand: Plain) -> Bool { values.contains { $0 == operand } }
    switch filter.comparator {
    case .equals, .in, .listContains, .listContainsAny: return values.contains(where: isAny)
    case .notEquals, .notIn, .notListContains, .notListContainsAny:
      return !values.contains(where: isAny)
    case .listContainsAll: return operands.allSatisfy(has)
    case .notListContainsAll: return !operands.allSatisfy(has)
    case .lessThan: return values.first.map { $0 < operands[0] } ?? false
    case .lessThanOrEquals: return values.first.map { !(operands[0] < $0) } ?? false
    case .greaterThan: return values.first.map { operands[0] < $0 } ?? false
    case .greaterThanOrEquals: return values.first.map { !($0 < operands[0]) } ?? false
    case .beginsWith, .listMemberBeginsWith: return values.contains(where: begins)
    case .notBeginsWith, .notListMemberBeginsWith: return !values.contains(where: begins)
    case .near:
      guard case .place(let place)? = values.first, case .place(let center)? = operands.first
      else { return false }
      return Self.metres(center, place) <= filter.distance ?? 0
    case .containsAllTokens, .containsAnyTokens:
      guard case .text(let text)? = operands.first else { return false }
      let wanted = Self.words(text)
      let fields = filter.fieldName.map { [$0] } ?? ["s", "ls"]
      let found = Set(
        fields.flatMap(thing.values).flatMap { value -> Set<String> in
          if case .text(let text) = value { Self.words(text) } else { [] }
        }
      )
      return filter.comparator == .containsAnyTokens
        ? !wanted.isDisjoint(with: found) : !wanted.isEmpty && wanted.isSubset(of: found)
    }
  }

  private static func words(_ text: String) -> Set<String> {
    let plain = text.lowercased().replacing("é", with: "e").replacing("ó", with: "o")
      .replacing("e\u{301}", with: "e")
    return Set(plain.split(separator: " ").map(String.init)).subtracting(["the", "a"])
  }

  /// The spherical law of cosines, another formula than the server's.
  static func metres(_ left: LocationValue, _ right: LocationValue) -> Double {
    func vector(_ place: LocationValue) -> [Double] {
      let (latitude, longitude) = (place.latitude * .pi / 180, place.longitude * .pi / 180)
      return [cos(latitude) * cos(longitude), cos(latitude) * sin(longitude), sin(latitude)]
    }
    let (a, b) = (vector(left), vector(right))
    let gap = zip(a, b).map { ($0 - $1) * ($0 - $1) }.reduce(0, +).squareRoot()
    return 2 * asin(min(1, gap / 2)) * 6_371_008.8
  }
}

/// A query with its meaning.
private struct Question: CustomStringConvertible {
  var filters: [Condition]
  var sorts: [QuerySort]
  var isWide: Bool

  init(_ dice: inout Dice) {
    filters = (0..<dice.below(4)).map { _ in Condition(&dice) }
    sorts = (0..<dice.below(3)).map { _ in
      let field = dice.pick(["s", "i", "d", "t", "b", "n", "ls", "li", "___recordID", "p"])
      return QuerySort(
        fieldName: field,
        ascending: dice.pick([true, false, nil]),
        relativeLocation: field == "p" ? dice.pick(Thing.places) : nil
      )
    }
    isWide = dice.below(3) == 0
  }

  var query: RecordQuery {
    RecordQuery(recordType: "Thing", filterBy: filters.map(\.filter), sortBy: sorts)
  }

  var description: String { "\(filters) sorted by \(sorts)\(isWide ? ", all zones" : "")" }

  func isInOrder(_ left: Thing, _ right: Thing) -> Bool {
    for sort in sorts {
      let isAscending = sort.ascending ?? true
      let (first, second) = (key(left, sort, isAscending), key(right, sort, isAscending))
      // A missing value sorts first.
      switch (first, second) {
      case (nil, nil): continue
      case (nil, _): return isAscending
      case (_, nil): return !isAscending
      case (let first?, let second?):
        if first < second { return isAscending }
        if second < first { return !isAscending }
      }
    }
    return true
  }

  private func key(_ thing: Thing, _ sort: QuerySort, _ isAscending: Bool) -> Plain? {
    let values = thing.values(sort.fieldName ?? "").map(\.cut)
    if let center = sort.relativeLocation {
      // Rounded: two formulas differ in the last digits.
      guard case .place(let place)? = values.first else { return .real(.infinity) }
      return .real((Condition.metres(center, place) / 10).rounded())
    }
    return isAscending ? values.min { $0 < $1 } : values.max { $0 < $1 }
  }
}
