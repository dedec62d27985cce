import Foundation

/// Generates JSON for a type by decoding the type.
///
/// The values that a type's `init(from:)` requests are generated at that moment and recorded in a
/// tree. So the tree has the type's present structure: a field that is added to a request is fuzzed
/// from then on. A type that throws ends the decoding; the tree is still usable.
struct FuzzedDecoder: Decoder {
  let node: FuzzedNode
  let words: FuzzedWords
  var codingPath: [any CodingKey] = []
  var userInfo: [CodingUserInfoKey: Any] = [:]

  /// JSON for a type.
  static func body(of type: any Decodable.Type, _ words: FuzzedWords) -> FuzzedNode {
    let node = FuzzedNode()
    _ = try? FuzzedDecoder(node: node, words: words).value(of: type)
    return node
  }

  /// The key of the value; elements of arrays have the array's key.
  private var key: String { codingPath.last { $0.intValue == nil }?.stringValue ?? "" }

  private func child(_ node: FuzzedNode, _ key: any CodingKey) -> FuzzedDecoder {
    FuzzedDecoder(node: node, words: words, codingPath: codingPath + [key])
  }

  fileprivate func mismatch(_ type: Any.Type) -> DecodingError {
    .typeMismatch(type, .init(codingPath: codingPath, debugDescription: "made up otherwise"))
  }

  /// Decides the kind of an open node if a type accepts several: each in turn.
  private func decide(for type: Any.Type) {
    guard case .open = node.content else { return }
    let name = "\(type)"
    let isOfManyShapes = ["Untagged", "ListElement", "OneOrMany"].contains { name.contains($0) }
    guard isOfManyShapes ? words.chance(2, in: 3) : words.chance(1, in: 60) else { return }
    node.content =
      switch words.index(below: 6) {
      case 0: .string(words.text(for: key))
      case 1: .number(words.number())
      case 2: .boolean(words.chance(1, in: 2))
      case 3: .array(codingPath.count < 12 ? [FuzzedNode(), FuzzedNode()] : [])
      case 4: .null
      default: .open
      }
  }

  fileprivate func value<Value: Decodable>(of type: Value.Type) throws -> Value {
    // Recursive types are limited to a depth.
    guard codingPath.count < 40 else { throw mismatch(type) }
    decide(for: type)
    if let words = (type as? any CaseIterable.Type).flatMap(Self.words(of:)),
      case .open = node.content, !words.isEmpty, self.words.chance(19, in: 20)
    {
      node.content = .string(FuzzedNode.escaped(self.words.pick(words)))
    }
    if type == Data.self, let data = Data() as? Value {
      node.content = .string(Array(words.pick(["", "QUJD", "////", "Q"]).utf8))
      return data
    }
    return try Value(from: self)
  }

  /// The raw values of an enumeration.
  private static func words(of type: any CaseIterable.Type) -> [String]? {
    func words<Cases: CaseIterable>(_: Cases.Type) -> [String] {
      Cases.allCases.compactMap { ($0 as? any RawRepresentable)?.rawValue as? String }
    }
    return words(type)
  }

  // MARK: Decoder

  func container<Key: CodingKey>(keyedBy: Key.Type) throws -> KeyedDecodingContainer<Key> {
    if case .open = node.content { node.content = .object([]) }
    guard case .object = node.content else { throw mismatch([String: Any].self) }
    return KeyedDecodingContainer(Keyed<Key>(decoder: self))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    if case .open = node.content {
      let count = codingPath.count < 12 ? words.pick([0, 1, 1, 1, 2, 3]) : 0
      node.content = .array((0..<count).map { _ in FuzzedNode() })
      if words.chance(1, in: 40) { node.repetitions = words.pick([2, 100, 199, 200, 201, 1001]) }
    }
    guard case .array(let elements) = node.content else { throw mismatch([Any].self) }
    return Unkeyed(decoder: self, elements: elements)
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { Single(decoder: self) }

  // MARK: Containers

  private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: FuzzedDecoder
    var codingPath: [any CodingKey] { decoder.codingPath }

    private var members: [(key: String, value: FuzzedNode)] {
      if case .object(let members) = decoder.node.content { members } else { [] }
    }

    private func member(_ key: any CodingKey) -> FuzzedNode? {
      members.first { $0.key == key.stringValue }?.value
    }

    @discardableResult
    private func make(_ key: any CodingKey) -> FuzzedNode {
      if let known = member(key) { return known }
      let made = FuzzedNode()
      decoder.node.content = .object(members + [(key.stringValue, made)])
      return made
    }

    /// For a dictionary: any names.
    var allKeys: [Key] {
      if members.isEmpty {
        for _ in 0..<decoder.words.pick([0, 1, 2, 4]) {
          if let key = Key(stringValue: decoder.words.pick(["title", "n", "file", "t", "r", "p"])) {
            make(key)
          }
        }
      }
      return members.compactMap { Key(stringValue: $0.key) }
    }

    func contains(_ key: Key) -> Bool {
      decoder.words.note(key: key.stringValue)
      if member(key) != nil { return true }
      guard decoder.words.chance(2, in: 3) else { return false }
      // The storage's own keys are refused first: they are rare, so that the rest is reached too.
      let isInternal = ["sealedType", "blob"].contains(key.stringValue)
      if isInternal, !decoder.words.chance(1, in: 20) { return false }
      make(key)
      return true
    }

    private func below(_ key: Key) -> FuzzedDecoder {
      decoder.words.note(key: key.stringValue)
      return decoder.child(make(key), key)
    }

    func decodeNil(forKey key: Key) throws -> Bool {
      try below(key).singleValueContainer().decodeNil()
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
      try below(key).value(of: type)
    }

    func nestedContainer<Nested: CodingKey>(
      keyedBy type: Nested.Type,
      forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
      try below(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
      try below(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { decoder }
    func superDecoder(forKey key: Key) throws -> any Decoder { below(key) }
  }

  private struct Place: CodingKey {
    var intValue: Int?
    var stringValue: String { "\(intValue ?? 0)" }
    init(_ index: Int) { intValue = index }
    init?(intValue: Int) { self.intValue = intValue }
    init?(stringValue: String) { nil }
  }

  private struct Unkeyed: UnkeyedDecodingContainer {
    let decoder: FuzzedDecoder
    let elements: [FuzzedNode]
    var currentIndex = 0
    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex >= elements.count }

    private mutating func next() throws -> FuzzedDecoder {
      guard !isAtEnd else { throw decoder.mismatch([Any].self) }
      defer { currentIndex += 1 }
      return decoder.child(elements[currentIndex], Place(currentIndex))
    }

    mutating func decodeNil() throws -> Bool {
      guard !isAtEnd, case .null = elements[currentIndex].content else { return false }
      currentIndex += 1
      return true
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
      try next().value(of: type)
    }

    mutating func nestedContainer<Nested: CodingKey>(
      keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
      try next().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
      try next().unkeyedContainer()
    }

    mutating func superDecoder() throws -> any Decoder { try next() }
  }

  private struct Single: SingleValueDecodingContainer {
    let decoder: FuzzedDecoder
    var codingPath: [any CodingKey] { decoder.codingPath }
    private var node: FuzzedNode { decoder.node }
    private var words: FuzzedWords { decoder.words }

    init(decoder: FuzzedDecoder) { self.decoder = decoder }

    func decodeNil() -> Bool {
      if case .open = node.content, words.chance(1, in: 40) { node.content = .null }
      if case .null = node.content { return true }
      return false
    }

    func decode(_ type: Bool.Type) throws -> Bool {
      if case .open = node.content { node.content = .boolean(words.chance(1, in: 2)) }
      guard case .boolean(let flag) = node.content else { throw decoder.mismatch(type) }
      return flag
    }

    func decode(_ type: String.Type) throws -> String {
      if case .open = node.content { node.content = .string(words.text(for: decoder.key)) }
      guard case .string(let bytes) = node.content else { throw decoder.mismatch(type) }
      return String(decoding: bytes, as: UTF8.self)
    }

    private func digits(_ type: Any.Type) throws -> String {
      if case .open = node.content { node.content = .number(words.number()) }
      guard case .number(let digits) = node.content else { throw decoder.mismatch(type) }
      return digits
    }

    private func integer<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
      guard let value = Number(try digits(type)) else { throw decoder.mismatch(type) }
      return value
    }

    func decode(_ type: Double.Type) throws -> Double {
      guard let value = Double(try digits(type)) else { throw decoder.mismatch(type) }
      return value
    }

    func decode(_ type: Float.Type) throws -> Float {
      guard let value = Float(try digits(type)) else { throw decoder.mismatch(type) }
      return value
    }

    func decode(_ type: Int.Type) throws -> Int { try integer(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { try integer(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { try integer(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { try integer(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { try integer(type) }
    func decode(_ type: UInt.Type) throws -> UInt { try integer(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try integer(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try integer(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try integer(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try integer(type) }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
      try decoder.value(of: type)
    }
  }
}
