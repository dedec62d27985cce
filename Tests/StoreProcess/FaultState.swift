import Effects
import Foundation
import OpenCoreData
import WatershedSQLite

/// The contents of the stores in a folder, as lines of text: objects with their values, files and
/// links, and the history.
///
/// The saves of the other process are kept apart.
struct FaultState: Equatable {
  /// A defect of a store.
  struct Defect: Error, CustomStringConvertible {
    let description: String
  }

  static let files = ["a.sqlite", "b.sqlite", "a.binary", "b.binary"]
  /// The prefix of names that the other process saves.
  static let otherPrefix = "other-"

  private(set) var lines: [String] = []
  /// File and name of the cards that the other process saved.
  private(set) var others: Set<String> = []

  static func == (left: FaultState, right: FaultState) -> Bool { left.lines == right.lines }

  init(folder: URL) throws {
    for file in Self.files {
      let url = folder.appendingPathComponent(file)
      guard try FileSystem.size(of: url.path) > 0 else { continue }
      do {
        try read(url)
      } catch {
        throw Defect(description: "\(file) cannot be read: \(error)")
      }
    }
  }

  private mutating func read(_ url: URL) throws {
    let isSQLite = url.pathExtension == "sqlite"
    let model = isSQLite ? try SQLiteStore.model(inStoreAt: url) : FaultModel.make()
    let type = isSQLite ? NSSQLiteStoreType : NSBinaryStoreType
    let file = url.lastPathComponent
    let (found, others) = try FaultModel.withStore(url, model: model, type: type) { context in
      var found: [String] = []
      var others: Set<String> = []
      for entity in model.entities {
        let request = NSFetchRequest<NSManagedObject>(entityName: entity.name ?? "")
        for object in try context.fetch(request) {
          let name = Self.name(object)
          if name.hasPrefix(Self.otherPrefix) {
            others.insert("\(file) \(name)")
          } else {
            found.append("\(file) \(Self.line(object))")
          }
        }
      }
      if isSQLite { found += try Self.history(context).map { "\(file) \($0)" } }
      return (found.sorted(), others)
    }
    lines += found
    self.others.formUnion(others)
    guard isSQLite else { return }
    let connection = try SQLiteConnection(path: url.path, mode: .readOnly)
    let answer = try connection.scalar("PRAGMA integrity_check")
    guard answer == .text("ok") else {
      throw Defect(description: "integrity_check says \(String(describing: answer))")
    }
  }

  private static func name(_ object: NSManagedObject) -> String {
    let key = object.entity.attributesByName["title"] == nil ? "name" : "title"
    return object.value(forKey: key) as? String ?? "nil"
  }

  private static func line(_ object: NSManagedObject) -> String {
    var parts: [String] = [object.entity.name ?? ""]
    for key in object.entity.attributesByName.keys.sorted() {
      switch object.value(forKey: key) {
      case let data as Data:
        let isUniform = data.allSatisfy { $0 == data.first }
        parts.append("\(key)=\(data.count)x\(data.first ?? 0)\(isUniform ? "" : " torn")")
      case let value?: parts.append("\(key)=\(value)")
      case nil: parts.append("\(key)=nil")
      }
    }
    for (key, relationship) in object.entity.relationshipsByName.sorted(by: { $0.key < $1.key }) {
      if relationship.isToMany {
        let members = object.value(forKey: key) as? Set<NSManagedObject> ?? []
        parts.append("\(key)=\(members.map(name).sorted())")
      } else {
        parts.append("\(key)=\((object.value(forKey: key) as? NSManagedObject).map(name) ?? "nil")")
      }
    }
    return parts.joined(separator: " ")
  }

  /// The kinds of the changes of each transaction, without those of the other process.
  private static func history(_ context: NSManagedObjectContext) throws -> [String] {
    let request = NSPersistentHistoryChangeRequest.fetchHistory(
      after: nil as NSPersistentHistoryToken?
    )
    let result = try context.execute(request) as? NSPersistentHistoryResult
    let transactions = result?.result as? [NSPersistentHistoryTransaction] ?? []
    return transactions.filter { $0.author != FaultNeighbour.author }.enumerated().map { item in
      let kinds = (item.element.changes ?? []).map {
        "\($0.changedObjectID.entity.name ?? "")\($0.changeType.rawValue)"
      }
      return "history \(item.offset): \(kinds.sorted())"
    }
  }
}
