import Effects
import Foundation

/// The values of fuzzed bodies: texts that are meaningful to the server, the bounds of every number
/// type, and texts that are difficult for parsers.
final class FuzzedWords {
  let random: SeededRandomness
  /// Values in replies by their keys, newest last: valid tokens, names and tags.
  private var live: [String: [String]] = [:]
  /// Keys that any type has requested: each may be used where it does not belong.
  private(set) var keys: Set<String> = []
  private var orderedKeys: [String] = []

  /// The credentials of the fuzzer itself: a call that removed them would end the test.
  var kept: [String] = []

  init(_ random: SeededRandomness) { self.random = random }

  func chance(_ one: UInt64, in all: UInt64) -> Bool { random.next() % all < one }

  func index(below count: Int) -> Int { Int(random.next() % UInt64(count)) }

  func pick<Value>(_ values: [Value]) -> Value { values[index(below: values.count)] }

  func note(key: String) {
    guard keys.insert(key).inserted else { return }
    orderedKeys.append(key)
  }

  /// A key of some type; includes the storage's own once a reader has checked for them.
  func key() -> String { orderedKeys.isEmpty ? "a" : pick(orderedKeys) }

  /// Records the strings of a reply.
  func learn(from body: Data) {
    guard let value = try? JSONSerialization.jsonObject(with: body) else { return }
    learn(value, under: "")
  }

  private func learn(_ value: Any, under key: String) {
    switch value {
    case let object as [String: Any]:
      // Sorted by name, so that a seed generates the same requests.
      for (key, value) in object.sorted(by: { $0.key < $1.key }) { learn(value, under: key) }
    case let list as [Any]: for value in list.prefix(20) { learn(value, under: key) }
    case let text as String where text.utf8.count < 4096:
      // Tokens can also be removed by their prefixes.
      guard !kept.contains(where: { $0.hasPrefix(text) }) else { return }
      live[key, default: []].append(text)
      if live[key, default: []].count > 8 { live[key]?.removeFirst() }
    default: break
    }
  }

  // MARK: Numbers

  /// A number in any JSON notation.
  func number() -> String {
    if chance(1, in: 2) { return pick(["0", "1", "2", "5", "200", "1700000000000"]) }
    return pick(Self.numbers)
  }

  static let numbers: [String] = {
    var ends: [String] = ["-0", "-1", "-0.0", "0.1", "-0.1", "1.5", "1e2", "1E+2", "1e-2"]
    ends += ["1e308", "-1e308", "1e309", "1e-400", "5e-324", "1e999999999", "0e0", "1.0"]
    func add<Number: FixedWidthInteger>(_: Number.Type) {
      ends += ["\(Number.min)", "\(Number.max)"]
    }
    add(Int8.self)
    add(UInt8.self)
    add(Int16.self)
    add(UInt16.self)
    add(Int32.self)
    add(UInt32.self)
    add(Int64.self)
    add(UInt64.self)
    ends += ["9223372036854775808", "-9223372036854775809", "18446744073709551616"]
    ends += ["9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993"]
    ends += ["9223372036854774784", "9223372036854775807.0", "-9223372036854775808.0"]
    ends += [String(repeating: "9", count: 400), "0." + String(repeating: "3", count: 400)]
    // Texts that look like numbers and are none.
    ends += ["01", "+1", "1.", ".5", "0x10", "NaN", "Infinity", "-", "1e", "1_000"]
    return ends
  }()

  // MARK: Text

  /// The bytes between the quotes of a string.
  func text(for key: String) -> [UInt8] {
    switch random.next() % 16 {
    case 0..<6:
      if let known = live[key], !known.isEmpty { return FuzzedNode.escaped(pick(known)) }
      return FuzzedNode.escaped(pick(Self.words[key] ?? Self.plain))
    case 6..<12: return FuzzedNode.escaped(pick(Self.words[key] ?? Self.plain))
    case 12: return FuzzedNode.escaped(pick(Self.plain))
    case 13:
      // A valid value with a changed byte.
      var bytes = FuzzedNode.escaped(pick(live[key] ?? Self.words[key] ?? Self.plain))
      guard !bytes.isEmpty else { return bytes }
      bytes[index(below: bytes.count)] = UInt8(truncatingIfNeeded: random.next())
      return bytes
    case 14: return pick(Self.odd)
    default:
      let size = pick([0, 1, 254, 255, 256, 257, 1023, 1024, 2713, 9000])
      return Array(repeating: UInt8(ascii: "x"), count: size)
    }
  }

  /// Values of the server's data, by key; other keys use plain words.
  private static let words: [String: [String]] = [
    "recordName": ["a", "b", "c", "root", "share", "cloudkit.zoneshare", "r", "_x"],
    "zoneName": ["notes", "_defaultZone", "mine", "open"],
    "recordType": ["Note", "Letter", "cloudkit.share", "Users", "Other"],
    "fieldName": ["title", "n", "file", "t", "___recordID", "___modTime", "___createdBy"],
    "emailAddress": ["ada@example.com", "BOB@example.com", "nobody@example.com", ""],
    "container": ["iCloud.example", "iCloud.other", "c"],
    "environment": ["development", "production"],
    "userName": ["ada", "bob", "nobody", "fuzz"],
    "password": ["secret", "wrong", "long enough password"],
    "type": [
      "STRING", "INT64", "DOUBLE", "TIMESTAMP", "BYTES", "LOCATION", "REFERENCE", "ASSETID",
      "STRING_LIST", "INT64_LIST", "DOUBLE_LIST", "TIMESTAMP_LIST", "BYTES_LIST", "LOCATION_LIST",
      "REFERENCE_LIST", "ASSETID_LIST", "UNKNOWN_LIST", "ENCRYPTED_STRING", "ENCRYPTED_BYTES",
    ],
    "recordChangeTag": ["1", "a"],
    "desiredKeys": ["title", "n", "___modTime"],
    "schema": [
      "DEFINE SCHEMA RECORD TYPE Fuzz (a STRING QUERYABLE, b LIST<INT64>, c ENCRYPTED STRING);",
      "DEFINE SCHEMA RECORD TYPE Fuzz (a INT64); CREATE ROLE r;",
    ],
    "publicKey": ["-----BEGIN PUBLIC KEY-----"],
    "path": ["/nowhere/at/all"],
  ]

  private static let plain = [
    "", "a", "notes", "title", "0", "-1", "null", "1970-01-01T00:00:00Z", "QUJD", "../../x", "/",
    "%00", "<script>", "' OR 1=1 --", "ada", "\u{0}", "\u{7F}", "\u{1B}[31m", "\u{202E}abc",
    "\u{FEFF}", "é", "e\u{301}", "👩‍👩‍👧‍👦", "\u{10FFFF}", "İ", "ß", "ﬀ",
  ]

  /// Invalid text: bytes that are not UTF-8, unpaired surrogates, incomplete escapes.
  private static let odd: [[UInt8]] = [
    [0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0x80], [0xE2, 0x82],
    Array(#"\ud800"#.utf8), Array(#"\udc00\ud800"#.utf8), Array(#"\u0000"#.utf8),
    Array(#"\uFFFF"#.utf8), Array(#"\u12"#.utf8), Array(#"\x"#.utf8), Array(#"\"#.utf8),
    [0x00], [0x0A], Array(#"\ud83d\ude00"#.utf8), Array("\u{2028}".utf8),
  ]
}
