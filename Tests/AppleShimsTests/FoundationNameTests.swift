import AppleShims
import Foundation
import Testing

@Suite("Names that Foundation brings on Apple's platforms")
struct FoundationNameTests {
  private actor Store: ObservableObject {
    @MainActor @Published var names: [String] = []
    @Published var count: Int

    init(count: Int) {
      _count = Published(initialValue: count)
    }

    func add() { count += 1 }
  }

  @Test("A published property of an observable object holds its value")
  @MainActor
  func published() async {
    let store = Store(count: 1)
    store.names.append("a")
    await store.add()
    #expect(store.names == ["a"])
    #expect(await store.count == 2)
    let object: any ObservableObject = store
    #expect(object === store)
  }

  @Test("A localized text is that of the bundle's table, and else the text itself")
  func localized() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("\(UUID().uuidString).bundle")
    defer { try? FileManager.default.removeItem(at: folder) }
    let table = folder.appendingPathComponent("en.lproj")
    try FileManager.default.createDirectory(at: table, withIntermediateDirectories: true)
    try Data(#""Notes" = "My notes"; "key" = "A key";"#.utf8)
      .write(to: table.appendingPathComponent("Localizable.strings"))
    let bundle = try #require(Bundle(url: folder))
    #expect(String(localized: "Notes", bundle: bundle, comment: "A title") == "My notes")
    #expect(String(localized: "Tags", bundle: bundle, comment: "A title") == "Tags")
    #expect(String(localized: "\(2) notes", bundle: bundle) == "2 notes")
    #expect(String(localized: "key", defaultValue: "No key", bundle: bundle) == "A key")
    #expect(String(localized: "other", defaultValue: "No key", bundle: bundle) == "No key")
    #expect(String(localized: "Notes") == "Notes")
  }

  @Test("The main queue and the global ones equal themselves, and other queues only themselves")
  func queues() {
    #expect(DispatchQueue.main == .main)
    #expect(DispatchQueue.global() == .global())
    #expect(DispatchQueue.global() != .global(qos: .utility))
    let queue = DispatchQueue(label: "a")
    #expect(queue == queue)
    #expect(queue != DispatchQueue(label: "a"))
    #expect(Set([queue, queue, .main, .main]).count == 2)
  }

  private final class Key {}

  @Test("A table with weak keys keeps its values for as long as the keys exist")
  func weakKeys() {
    let table = NSMapTable<Key, NSNumber>.weakToStrongObjects()
    let kept = Key()
    var gone: Key? = Key()
    table.setObject(1, forKey: kept)
    table.setObject(2, forKey: gone)
    #expect(table.object(forKey: gone) == 2)
    #expect(table.count == 2)
    gone = nil
    #expect(table.count == 1)
    #expect(table.object(forKey: kept) == 1)
    table.setObject(3, forKey: kept)
    #expect(table.object(forKey: kept) == 3)
    #expect(table.object(forKey: Key()) == nil)
    #expect(table.keyEnumerator().allObjects.count == 1)
    table.setObject(nil, forKey: kept)
    #expect(table.count == 0)
    for number in 0..<100 { table.setObject(number as NSNumber, forKey: Key()) }
    #expect(table.count == 0)
  }

  @Test("A table with weak values has equal keys once, and none whose value is gone")
  func weakValues() {
    let table = NSMapTable<NSString, Key>.strongToWeakObjects()
    var value: Key? = Key()
    table.setObject(value, forKey: "a")
    let other = Key()
    table.setObject(other, forKey: NSString(string: "b"))
    table.setObject(other, forKey: NSString(string: "b"))
    #expect(table.count == 2)
    #expect(table.object(forKey: "a") === value)
    #expect(table.objectEnumerator()?.allObjects.count == 2)
    value = nil
    #expect(table.object(forKey: "a") == nil)
    table.removeObject(forKey: "b")
    #expect(table.count == 0)
    let strong = NSMapTable<NSString, Key>.strongToStrongObjects()
    strong.setObject(Key(), forKey: "c")
    #expect(strong.object(forKey: "c") != nil)
    strong.removeAllObjects()
    #expect(strong.count == 0)
  }
}
