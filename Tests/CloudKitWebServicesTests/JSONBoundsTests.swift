import Foundation
import Testing

@testable import CloudKitWebServices

/// The check of a body's size in values, before it is decoded.
@Suite("Bounds of JSON")
struct JSONBoundsTests {
  private func refusal(
    _ json: String,
    arrays: [String: JSONBounds.ArrayLimit] = [:],
    otherArrays: Int = 1000,
    values: Int = 1000
  ) -> JSONBounds.Refusal? {
    let bounds = JSONBounds(arrays: arrays, otherArrays: otherArrays, values: values)
    do throws(JSONBounds.Refusal) {
      try bounds.check(Data(json.utf8))
      return nil
    } catch {
      return error
    }
  }

  @Test("An array may have as many elements as its limit", arguments: [2, 3, 4])
  func elements(count: Int) {
    let list = Array(repeating: "1", count: count).joined(separator: ",")
    let expected = count > 3 ? JSONBounds.Refusal.array("a", limit: 3) : nil
    #expect(refusal(#"{"a":[\#(list)]}"#, arrays: ["a": .init(3)]) == expected)
    #expect(refusal(#"{"b":[{"a" : [\#(list)]}]}"#, arrays: ["a": .init(3)]) == expected)
    #expect(refusal(#"{"b":[\#(list)]}"#, arrays: ["a": .init(3)]) == nil)
    #expect(
      refusal(#"{"b":[\#(list)]}"#, otherArrays: 3)
        == (count > 3 ? JSONBounds.Refusal.array("b", limit: 3) : nil)
    )
    // An array in an array has no member.
    #expect(
      refusal("[[\(list)]]", otherArrays: 3)
        == (count > 3 ? JSONBounds.Refusal.array("", limit: 3) : nil)
    )
  }

  @Test("A limit for the member of a named member is preferred")
  func qualified() {
    let arrays: [String: JSONBounds.ArrayLimit] = ["value": .init(3), "filter.value": .init(1)]
    #expect(refusal(#"{"field":{"value":[1,2,3]}}"#, arrays: arrays) == nil)
    #expect(
      refusal(#"{"filter":{"value":[1,2]}}"#, arrays: arrays) == .array("value", limit: 1)
    )
  }

  @Test("The arrays of one member share a limit")
  func inAll() {
    let arrays: [String: JSONBounds.ArrayLimit] = ["a": .init(2, inAll: 3)]
    #expect(refusal(#"[{"a":[1,2]},{"a":[3]}]"#, arrays: arrays) == nil)
    #expect(refusal(#"[{"a":[1,2]},{"a":[3,4]}]"#, arrays: arrays) == .arrays("a", limit: 3))
  }

  @Test("All values of a body are counted, of ignored members too")
  func values() {
    // The object, the array and three numbers.
    #expect(refusal(#"{"x":[1,2,3]}"#, values: 5) == nil)
    #expect(refusal(#"{"x":[1,2,3]}"#, values: 4) == .values(limit: 4))
    #expect(refusal(#"{"x":{"y":null,"z":{}},"w":[]}"#, values: 4) == .values(limit: 4))
  }

  @Test("A text has a limited number of combining marks in a row, however they are written")
  func marks() {
    for mark in ["\u{0301}", #"\u0323"#, "\u{1D165}", #"\ud834\udd65"#, "\u{0F73}", "\u{0344}"] {
      func run(_ count: Int) -> String { String(repeating: mark, count: count) }
      for text in ["a\(run(128))b\(run(128))", "\(run(128))", "a\(run(128))\\n\(run(128))"] {
        #expect(refusal(#"["\#(text)"]"#) == nil)
        #expect(refusal(#"{"\#(text)":1}"#) == nil)
      }
      for text in ["a\(run(129))", "\(run(64))\\u0301\(run(64))"] {
        #expect(refusal(#"["\#(text)"]"#) == .marks(limit: 128))
        #expect(refusal(#"{"\#(text)":1}"#) == .marks(limit: 128))
      }
    }
    // Each text has runs of its own, and half of a pair is no mark.
    let marks = String(repeating: "\u{0301}", count: 100)
    #expect(refusal(#"["\#(marks)","\#(marks)"]"#) == nil)
    #expect(refusal(#"["\#(marks)\ud834\#(marks)"]"#) == nil)
  }

  @Test("A mark is each scalar that normalization sorts among its neighbours")
  func allMarks() {
    for value in UInt32(0)...0x10FFFF {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let first = String(scalar).decomposedStringWithCanonicalMapping.unicodeScalars.first ?? scalar
      let isSorted =
        scalar.properties.canonicalCombiningClass != .notReordered
        || first.properties.canonicalCombiningClass != .notReordered
      if CombiningMarks.isMark(scalar) != isSorted { Issue.record("\(value)") }
    }
  }

  @Test("Names of members and texts of named members have a limit of bytes", arguments: [4, 5])
  func names(count: Int) {
    var bounds = JSONBounds(arrays: [:], otherArrays: 10, values: 10)
    bounds.nameBytes = 4
    bounds.names = ["r"]
    let text = String(repeating: "x", count: count)
    for json in [#"{"\#(text)":1}"#, #"{"r":"\#(text)"}"#, #"{"r":["\#(text)"]}"#] {
      var isTaken = true
      do { try bounds.check(Data(json.utf8)) } catch { isTaken = false }
      #expect(isTaken == (count == 4), "\(json)")
    }
    for json in [#"{"v":"\#(text)"}"#, #"{"v":["\#(text)"]}"#, #"[["\#(text)"]]"#] {
      #expect(throws: Never.self) { try bounds.check(Data(json.utf8)) }
    }
  }

  @Test("A member's name is the same with escapes", arguments: ["record", #"re\u0063ord"#])
  func escapedNames(name: String) {
    var bounds = JSONBounds(arrays: [:], otherArrays: 10, values: 10)
    bounds.nameBytes = 12
    bounds.names = ["record"]
    let text = String(repeating: "x", count: 13)
    for json in [#"{"\#(name)":"\#(text)"}"#, #"{"\#(name)":["\#(text)"]}"#] {
      #expect(throws: JSONBounds.Refusal.name(limit: 12)) { try bounds.check(Data(json.utf8)) }
    }
    let arrays: [String: JSONBounds.ArrayLimit] = [
      "record": .init(3), "a.record": .init(1), "record.a": .init(2),
    ]
    #expect(
      refusal(#"{"\#(name)":[1,2,3,4]}"#, arrays: arrays) == .array("record", limit: 3)
    )
    #expect(
      refusal(#"{"\u0061":{"\#(name)":[1,2]}}"#, arrays: arrays) == .array("record", limit: 1)
    )
    #expect(
      refusal(#"{"\#(name)":{"a":[1,2,3]}}"#, arrays: arrays) == .array("a", limit: 2)
    )
  }

  @Test("An escaped backslash in a member's name begins no other escape")
  func escapedBackslash() {
    let arrays: [String: JSONBounds.ArrayLimit] = ["a": .init(1)]
    for name in [#"\\u0061"#, #"\u005cu0061"#, #"a\u00e9"#, #"\u0161"#, #"a\n"#] {
      #expect(refusal(#"{"\#(name)":[1,2]}"#, arrays: arrays) == nil)
    }
  }

  @Test(
    "Text that is no JSON is refused at its first error",
    arguments: [
      "", "{", "[", "}", "[1", "[1,]", "[,1]", "[1 2]", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#,
      #"{a:1}"#, #"{"a":1 "b":2}"#, "tru", "nul", "-", "01", "1.", ".5", "1e", "+1", "[1]]", "1 1",
      "\"", "\"\u{1}\"", #""\x""#, #""\u12g4""#, "[1}", #"{"a":1]"#, "NaN", "\u{0}",
      String(repeating: "[", count: 600) + String(repeating: "]", count: 600),
    ]
  )
  func malformed(text: String) {
    #expect(refusal(text) == .malformed)
  }

  @Test("Bytes that are not UTF-8 are refused in every string, and in names")
  func encoding() {
    let bounds = JSONBounds(arrays: [:], otherArrays: 1000, values: 1000)
    /// Each pair of bytes, and longer sequences at the limits of their ranges.
    var texts: [[UInt8]] = (0x80...0xFF).flatMap { first in
      [0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC0].map { [first, $0] }
    }
    texts += texts.map { $0 + [0x80] } + texts.map { $0 + [0x80, 0xBF] } + texts.map { [$0[0]] }
    texts += texts.map { $0 + [0x41] }
    for text in texts {
      let isValid = String(validating: text, as: UTF8.self) != nil
      for json in [[0x22] + text + [0x22], Array(#"{"a":{""#.utf8) + text + Array(#"":1}}"#.utf8)] {
        var isTaken = true
        do { try bounds.check(Data(json)) } catch { isTaken = false }
        #expect(isTaken == isValid, "\(text)")
      }
    }
  }

  @Test(
    "All that JSON allows is read",
    arguments: [
      " 1 ", "-0.5e+10", "true", "null", #""""#, "[]", "{}", "\u{FEFF}{}", "[ 1 , [ ] , { } ]",
      #"{"a":"\"\\\/\b\f\n\r\t\u00e9","":{"b":[false,null,1E5]}}"#, "\"ä€😀\"",
      #""\ud83d\ude00""#,
    ]
  )
  func wellFormed(text: String) throws {
    #expect(refusal(text) == nil)
    _ = try JSONSerialization.jsonObject(
      with: Data(text.drop { $0 == "\u{FEFF}" }.utf8),
      options: .fragmentsAllowed
    )
  }

  @Test("The check agrees with JSONSerialization on changed bodies")
  func agrees() {
    let body = Array(#"{"operations":[{"a":"x\n","b":[1,-2.5,true,null,{}]}],"c":"\u0041"}"#.utf8)
    for index in body.indices {
      for byte in [UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "\""), UInt8(ascii: "1"), 0] {
        var changed = body
        changed[index] = byte
        let isJSON = (try? JSONSerialization.jsonObject(with: Data(changed))) != nil
        let text = String(decoding: changed, as: UTF8.self)
        #expect((refusal(text) == nil) == isJSON, "\(text)")
      }
    }
  }

  @Test("An untagged list takes no more memory for each number than for a string")
  func elementSize() {
    #expect(MemoryLayout<UntaggedValue>.stride <= 24)
  }

  @Test("Untagged fractions need no JSONDecoder, and mean the same to it")
  func fractions() throws {
    for text in ["[1,2.5,-0.25,\"a\",true]", "[1.0,2.5]", "[1e3]", "[0.1e1,1]", "2.0", "-0.0"] {
      let json = Data(#"{"a":{"value":\#(text)}}"#.utf8)
      let slow = try WireCoding.decoder(of: json).decode([String: FieldValue].self, from: json)
      #expect(try WireCoding.decode([String: FieldValue].self, from: json) == slow)
    }
    var reader = JSONReader(Data("2.5".utf8))
    #expect(try reader.untaggedNumber() == .fraction(2.5))
  }

  @Test("A list of mixed values is decoded in order, with the type of each")
  func mixedList() throws {
    let json = Data(#"[1,"a","b",true,2,2.5,3,false,{"recordName":"r"},{"recordName":"s"},4]"#.utf8)
    let value = try JSONDecoder().decode(UntaggedValue.self, from: json)
    #expect(
      value
        == .list([
          .integer(1), .string("a"), .string("b"), .boolean(true), .integer(2), .fraction(2.5),
          .integer(3), .boolean(false), .reference(ReferenceValue(recordName: "r")),
          .reference(ReferenceValue(recordName: "s")), .integer(4),
        ])
    )
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode(UntaggedValue.self, from: Data("[1,[2]]".utf8))
    }
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode(UntaggedValue.self, from: Data("[1,null]".utf8))
    }
  }
}
