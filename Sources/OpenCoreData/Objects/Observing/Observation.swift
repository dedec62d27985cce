import Foundation

/// The change that observers are notified of.
enum ObservedMutation {
  /// The value is set.
  case setting
  /// Members are added or removed; the sets or arrays contain them.
  case members(NSKeyValueChange, added: Any?, removed: Any?, indexes: IndexSet?)

  /// The change that an accessor of the app announces for a to-many relationship.
  static func of(
    _ kind: NSKeyValueSetMutationKind,
    _ objects: Set<AnyHashable>
  ) -> ObservedMutation {
    let members = NSSet(array: objects.map(\.base))
    return switch kind {
    case .union: .members(.insertion, added: members, removed: nil, indexes: nil)
    case .minus, .intersect: .members(.removal, added: nil, removed: members, indexes: nil)
    case .set: .setting
    }
  }
}

/// One observer's registration for one key path of one object.
final class Observation {
  typealias Handler = ([NSKeyValueChangeKey: Any]) -> Void

  let keyPath: String
  let options: NSKeyValueObservingOptions
  let context: UnsafeMutableRawPointer?
  /// The object that was added by `addObserver`; nil for handlers.
  private(set) weak var observer: NSObject?
  private let handler: Handler
  /// Reads a value that key-value coding can't read.
  private let reader: ((NSObject) -> Any?)?
  /// The nesting of changes; only the outermost change is announced.
  private var depth = 0
  private var old: Any?

  init(
    keyPath: String,
    options: NSKeyValueObservingOptions,
    context: UnsafeMutableRawPointer? = nil,
    observer: NSObject? = nil,
    reader: ((NSObject) -> Any?)? = nil,
    handler: @escaping Handler
  ) {
    self.keyPath = keyPath
    self.options = options
    self.context = context
    self.observer = observer
    self.reader = reader
    self.handler = handler
  }

  func sendInitial(of object: NSObject) {
    guard options.contains(.initial) else { return }
    var change = Self.change(.setting)
    if options.contains(.new) { change[.newKey] = value(of: object) }
    handler(change)
  }

  /// The old value is passed where the object already has the new one.
  func willChange(_ object: NSObject, _ mutation: ObservedMutation, old known: Any? = nil) {
    depth += 1
    guard depth == 1 else { return }
    if options.contains(.old), case .setting = mutation { old = known ?? value(of: object) }
    guard options.contains(.prior) else { return }
    var change = describe(mutation, of: object, isPrior: true)
    change[.notificationIsPriorKey] = NSNumber(value: true)
    handler(change)
  }

  func didChange(_ object: NSObject, _ mutation: ObservedMutation) {
    // Without a call of `willChange` there is no change to announce.
    guard depth > 0 else { return }
    depth -= 1
    guard depth == 0 else { return }
    let change = describe(mutation, of: object, isPrior: false)
    old = nil
    handler(change)
  }

  private func describe(
    _ mutation: ObservedMutation,
    of object: NSObject,
    isPrior: Bool
  ) -> [NSKeyValueChangeKey: Any] {
    switch mutation {
    case .setting:
      var change = Self.change(.setting)
      if options.contains(.old) { change[.oldKey] = old ?? NSNull() }
      if options.contains(.new), !isPrior { change[.newKey] = value(of: object) }
      return change
    case .members(let kind, let added, let removed, let indexes):
      var change = Self.change(kind)
      if options.contains(.old), let removed { change[.oldKey] = removed }
      if options.contains(.new), !isPrior, let added { change[.newKey] = added }
      if let indexes { change[.indexesKey] = indexes }
      return change
    }
  }

  private func value(of object: NSObject) -> Any {
    let value =
      reader.map { $0(object) } ?? (object as? NSManagedObject)?.value(forKeyPath: keyPath)
    return value ?? NSNull()
  }

  private static func change(_ kind: NSKeyValueChange) -> [NSKeyValueChangeKey: Any] {
    [.kindKey: NSNumber(value: kind.rawValue)]
  }
}
