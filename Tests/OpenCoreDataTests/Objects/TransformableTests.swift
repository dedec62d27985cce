import Foundation
import Testing
import WatershedSQLite

@testable import OpenCoreData

/// Transformable attributes without a transformer, and with the one of secure archives.
@Suite("Values of transformable attributes")
struct TransformableTests {
  private let bench: MigrationBench

  init() throws {
    bench = try MigrationBench()
  }

  private static func model(_ transformer: String?) -> NSManagedObjectModel {
    MigrationBench.model(
      ModelParts.entity(
        "Note",
        [
          ModelParts.attribute("value", .transformableAttributeType) {
            $0.valueTransformerName = transformer
          }
        ]
      )
    )
  }

  private static let secure = NSValueTransformerName.secureUnarchiveFromDataTransformerName.rawValue

  /// Makes a note with a value the only one.
  private func replaceNotes(_ model: NSManagedObjectModel, _ value: Any) throws {
    try bench.open(model) { context in
      for note in try context.all("Note") { context.delete(note) }
      _ = context.insert("Note", ["value": value])
    }
  }

  /// Saves a value and returns it as another context reads it.
  private func saved(_ value: Any, _ transformer: String? = nil) throws -> Any? {
    let model = Self.model(transformer)
    try replaceNotes(model, value)
    return try bench.open(model) { try $0.all("Note").first?.value(forKey: "value") }
  }

  /// The code of the error of saving a value.
  private func failure(_ value: Any, _ transformer: String?) throws -> Int? {
    try bench.open(Self.model(transformer)) { context in
      let note = context.insert("Note", ["value": value])
      defer { context.delete(note) }
      do {
        try context.save()
        return nil
      } catch {
        return (error as NSError).code
      }
    }
  }

  /// Replaces the bytes of the value and returns it as a context reads it then.
  private func read(_ bytes: Data, _ transformer: String?) throws -> Any? {
    let model = Self.model(transformer)
    try replaceNotes(model, "a")
    try SQLiteConnection(path: bench.url.path, mode: .readWrite)
      .run("UPDATE ZNOTE SET ZVALUE = ?", [.blob(bytes)])
    return try bench.open(model) { try $0.all("Note").first?.value(forKey: "value") }
  }

  private func archive(_ value: Any) throws -> Data {
    try NSKeyedArchiver.archivedData(withRootObject: value, requiringSecureCoding: false)
  }

  // MARK: Classes

  @Test("Without a transformer an object of any class with a coding is stored, alone and in lists")
  func ownClasses() throws {
    #expect(try (saved(Hue("red")) as? Hue)?.name == "red")
    let list = try #require(try saved([Hue("blue")]) as? [Hue])
    #expect(list.map(\.name) == ["blue"])
    #expect(try (saved(Tint(7)) as? Tint)?.number == 7)
    let locale = try saved(NSLocale(localeIdentifier: "de_DE")) as? NSLocale
    #expect(locale.map { ($0 as Locale).identifier } == "de_DE")
    let ordered = try saved(NSOrderedSet(array: ["b", "a"])) as? NSOrderedSet
    #expect(ordered?.array as? [String] == ["b", "a"])
  }

  @Test("A value that could not be read again is refused by a save")
  func unreadableValues() throws {
    let code = NSManagedObjectValidationError
    #expect(try failure(NSAttributedString(string: "a"), nil) == code)
    #expect(try failure(Hue("red"), Self.secure) == code)
    #expect(try failure([Hue("red")], Self.secure) == code)
    #expect(try failure(Tint(7), Self.secure) == code)
    #expect(try failure(NSOrderedSet(array: ["a"]), Self.secure) == code)
    #expect(try failure(NSObject(), nil) == code)
    #expect(try failure("a", Self.secure) == nil)
  }

  @Test("A value is refused where its attribute names a transformer that is not found")
  func missingTransformer() throws {
    try bench.open(Self.model("NotATransformer")) { context in
      _ = context.insert("Note", ["value": ["a"]])
      let error = #expect(throws: NSError.self) { try context.save() }
      #expect(error?.code == NSManagedObjectValidationError)
      #expect(error?.localizedDescription.contains("'NotATransformer'") == true)
      let request = NSBatchInsertRequest(entityName: "Note", objects: [["value": ["a"]]])
      let refused = #expect(throws: NSError.self) { try context.execute(request) }
      #expect(refused?.localizedDescription.contains("'NotATransformer'") == true)
      context.reset()
    }
  }

  @Test("A class that the transformer does not allow reads as nil, and its bytes stay")
  func refusedClasses() throws {
    let bytes = try archive(NSArray(array: [Hue("red")]))
    #expect(try read(bytes, Self.secure) == nil)
    let model = Self.model(Self.secure)
    try bench.open(model) { _ = try $0.all("Note").first?.value(forKey: "value") }
    let stored = try SQLiteConnection(path: bench.url.path)
      .scalar("SELECT ZVALUE FROM ZNOTE")
    #expect(stored == .blob(bytes))
    #expect(try (read(bytes, nil) as? [Hue])?.map(\.name) == ["red"])
  }

  @Test("A transformer of the app's own allows its classes")
  func ownTransformer() throws {
    ValueTransformer.setValueTransformer(
      HueTransformer(),
      forName: NSValueTransformerName("HueTransformer")
    )
    #expect(try (saved(Hue("red"), "HueTransformer") as? Hue)?.name == "red")
    let bytes = try archive(Tint(7))
    #expect(try read(bytes, "HueTransformer") == nil)
  }

  @Test("Plain values that an earlier release archived in place of a transformer's bytes are read")
  func formerArchive() throws {
    ValueTransformer.setValueTransformer(
      WordsTransformer(),
      forName: NSValueTransformerName("WordsTransformer")
    )
    #expect(try saved(["x", "y"], "WordsTransformer") as? [String] == ["x", "y"])
    let former = try archive(["x", "y"] as NSArray)
    #expect(try read(former, "WordsTransformer") as? [String] == ["x", "y"])
    #expect(try read(archive(Tint(7)), "WordsTransformer") == nil)
  }

  // MARK: Numbers

  @Test("Decimal numbers are stored, alone, in lists and in dictionaries")
  func decimals() throws {
    func decimal(_ value: Any?) -> Decimal? { (value as? NSDecimalNumber)?.decimalValue }
    for text in ["1.5", "-0.000123", "0", "79228162514264337593543950335", "-3e40"] {
      let value = try #require(Decimal(string: text))
      #expect(try decimal(saved(NSDecimalNumber(decimal: value))) == value)
      #expect(try decimal(saved(value, Self.secure)) == value)
      #expect(try decimal((saved([value, "a"] as [Any]) as? NSArray)?.firstObject) == value)
      #expect(try decimal((saved(["a": value]) as? NSDictionary)?["a"]) == value)
    }
    #expect(try decimal(saved(NSDecimalNumber.notANumber))?.isNaN == true)
  }

  @Test("Numbers keep their values at the limits of their types")
  func numbers() throws {
    #expect(try saved(NSNumber(value: UInt64.max)) as? UInt64 == .max)
    #expect(try saved(NSNumber(value: Int64.min)) as? Int64 == .min)
    #expect(try saved(NSNumber(value: -1.5e300)) as? Double == -1.5e300)
    #expect(try saved(true) as? Bool == true)
  }

  // MARK: Bytes

  /// An archive as Apple's platforms write one, with mutable classes.
  private func appleArchive() -> Data {
    var builder = KeyedArchiveBuilder()
    let text = builder.object(
      class: ["NSMutableString", "NSString", "NSObject"],
      [("NS.string", .string("red"))]
    )
    let date = builder.object(class: ["NSDate", "NSObject"], [("NS.time", .real(5))])
    let list = builder.array([text, date, text], isMutable: true)
    let root = builder.reserve()
    builder.fill(
      root,
      class: ["NSMutableDictionary", "NSDictionary", "NSObject"],
      [("NS.keys", .array([builder.string("a")])), ("NS.objects", .array([list]))]
    )
    return builder.data(root: root)
  }

  @Test("An archive with mutable classes, as Apple's platforms write them, is read")
  func mutableClasses() throws {
    for transformer in [nil, Self.secure] {
      let value = try #require(try read(appleArchive(), transformer) as? NSDictionary)
      let list = try #require(value["a"] as? NSArray)
      #expect(list.count == 3)
      #expect(list[0] as? String == "red" && list[2] as? String == "red")
      #expect((list[1] as? Date) == Date(timeIntervalSinceReferenceDate: 5))
    }
  }

  @Test("Damaged bytes read as nil or as another value, and stop nothing")
  func damagedBytes() throws {
    let original = try archive(
      ["a": 1, "b": ["c", Date(timeIntervalSinceReferenceDate: 5)], "d": NSSet(array: ["e"])]
        as NSDictionary
    )
    var random = SeededNumbers(seed: 19)
    var unreadable = 0
    for _ in 0..<3_000 {
      var bytes = original
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        bytes[place] = UInt8.random(in: 0...255, using: &random)
      }
      let classes = NSSecureUnarchiveFromDataTransformer.allowedTopLevelClasses
      if TransformableArchive.unarchive(bytes, classes: classes) == nil { unreadable += 1 }
    }
    #expect(unreadable > 0)
    #expect(TransformableArchive.unarchive(original.prefix(100), classes: nil) == nil)
    #expect(TransformableArchive.unarchive(Data(), classes: nil) == nil)
  }

  @Test(
    "An object of the app's class whose members contain it, or that is nested too deeply, reads as nil"
  )
  func cycleOfClasses() throws {
    let name = NSStringFromClass(Hue.self)
    var builder = KeyedArchiveBuilder()
    let root = builder.reserve()
    let list = builder.array([.reference(root)])
    builder.fill(root, class: [name, "NSObject"], [("name", list)])
    #expect(TransformableArchive.unarchive(builder.data(root: root), classes: nil) == nil)
    var deep = KeyedArchiveBuilder()
    var value = deep.object(class: [name, "NSObject"], [("name", deep.string("red"))])
    for _ in 0..<10_000 { value = deep.array([value]) }
    let top = deep.reserve()
    deep.fill(top, class: ["NSArray", "NSObject"], [("NS.objects", .array([value]))])
    #expect(TransformableArchive.unarchive(deep.data(root: top), classes: nil) == nil)
  }

  @Test("A list that contains itself reads as nil")
  func cycle() throws {
    var builder = KeyedArchiveBuilder()
    let root = builder.reserve()
    builder.fill(
      root,
      class: ["NSArray", "NSObject"],
      [("NS.objects", .array([.reference(root)]))]
    )
    #expect(TransformableArchive.unarchive(builder.data(root: root), classes: nil) == nil)
  }

  @Test(
    "Lists that share their members, a hundred levels deep, read as nil",
    arguments: ["NSSet", "NSArray"]
  )
  func sharedMembers(collection: String) throws {
    var builder = KeyedArchiveBuilder()
    func chain() -> ArchiveValue {
      var top = builder.object(
        class: ["NSMutableString", "NSString", "NSObject"],
        [("NS.string", .string("a"))]
      )
      for _ in 0..<100 { top = builder.array([top, top], isMutable: true) }
      return top
    }
    let members = [chain(), chain()]
    let root = builder.reserve()
    builder.fill(root, class: [collection, "NSObject"], [("NS.objects", .array(members))])
    #expect(TransformableArchive.unarchive(builder.data(root: root), classes: nil) == nil)
  }

  @Test("A value that is nested too deeply is refused by a save")
  func deepValues() throws {
    func nested(_ levels: Int) -> Any {
      (0..<levels).reduce("leaf" as Any) { value, _ in [value] }
    }
    for levels in [1, 50, 99] {
      let data = try #require(TransformableArchive.archive(nested(levels), classes: nil))
      #expect(TransformableArchive.unarchive(data, classes: nil) != nil)
    }
    #expect(TransformableArchive.archive(nested(100), classes: nil) == nil)
    #expect(TransformableArchive.archive(nested(1000), classes: nil) == nil)
  }

  /// An archive of one object with the members `$classname` and another one.
  private func archive(secondKey: UInt8) -> Data {
    func text(_ string: String) -> [UInt8] {
      string.utf8.count < 15
        ? [0x50 | UInt8(string.utf8.count)] + Array(string.utf8) : []
    }
    let objects: [[UInt8]] = [
      [0xD2, 1, 2, 3, 4], text("$objects"), text("$top"), [0xA2, 5, 6], [0xD1, 7, 8],
      text("$null"), [0xD2, 9, secondKey, 11, 12], text("root"), [0x80, 1],
      text("$classname"), text("other"), text("NSString"), text("NSArray"),
    ]
    var data = Array("bplist00".utf8)
    var offsets: [UInt8] = []
    for object in objects {
      offsets.append(UInt8(data.count))
      data += object
    }
    let table = UInt8(data.count)
    data += offsets + [0, 0, 0, 0, 0, 0, 1, 1]
    for number in [UInt8(objects.count), 0, table] { data += [0, 0, 0, 0, 0, 0, 0, number] }
    return Data(data)
  }

  @Test("An archive whose object has two equal keys is damaged")
  func equalKeys() throws {
    #expect(try KeyedArchive(archive(secondKey: 10)).classNames == ["NSString"])
    #expect(throws: KeyedArchive.DamageError.self) { try KeyedArchive(archive(secondKey: 9)) }
  }

  @Test("A property list whose objects overlap is damaged")
  func overlappingObjects() {
    func number(_ value: Int) -> [UInt8] {
      withUnsafeBytes(of: UInt64(value).bigEndian) { [UInt8]($0) }
    }
    // Five hundred objects at one place: data of 1,000 bytes.
    var bytes = Data("bplist00".utf8) + [0x4F, 0x11, 0x03, 0xE8] + Data(count: 1_000)
    let table = bytes.count
    for _ in 0..<500 { bytes += [0, 8] }
    bytes += [UInt8](repeating: 0, count: 6) + [2, 2] + number(500) + number(0) + number(table)
    #expect(throws: BinaryPropertyList.DamageError.self) { _ = try BinaryPropertyList(bytes) }
  }
}

/// A value class of an app.
final class Hue: NSObject, NSSecureCoding {
  static var supportsSecureCoding: Bool { true }

  let name: String

  init(_ name: String) {
    self.name = name
  }

  init?(coder: NSCoder) {
    guard let name = coder.decodeObject(of: NSString.self, forKey: "name") else { return nil }
    self.name = name as String
  }

  func encode(with coder: NSCoder) { coder.encode(NSString(string: name), forKey: "name") }
}

/// A value class without secure coding.
final class Tint: NSObject, NSCoding {
  let number: Int

  init(_ number: Int) {
    self.number = number
  }

  init?(coder: NSCoder) { number = coder.decodeInteger(forKey: "number") }

  func encode(with coder: NSCoder) { coder.encode(number, forKey: "number") }
}

/// The transformer of an app with a value class.
private final class HueTransformer: NSSecureUnarchiveFromDataTransformer, @unchecked Sendable {
  override class var allowedTopLevelClasses: [AnyClass] {
    super.allowedTopLevelClasses + [Hue.self]
  }
}

/// A word or several as JSON.
private final class WordsTransformer: ValueTransformer, @unchecked Sendable {
  override func transformedValue(_ value: Any?) -> Any? {
    (value as? [String] ?? (value as? String).map { [$0] })
      .flatMap { try? JSONEncoder().encode($0) }
  }

  override func reverseTransformedValue(_ value: Any?) -> Any? {
    (value as? Data).flatMap { try? JSONDecoder().decode([String].self, from: $0) }
  }
}
