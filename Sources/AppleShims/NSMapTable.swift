#if !canImport(ObjectiveC)
import Foundation

/// A dictionary of objects that may hold its keys or its values weakly.
///
/// ```swift
/// let observers = NSMapTable<NSObject, NSMutableSet>.weakToStrongObjects()
/// observers.setObject(NSMutableSet(), forKey: store)
/// ```
///
/// An entry is gone once a weakly held key or value is. Keys are compared with `isEqual(_:)`, and those that
/// are no `NSObject` by identity. As with Apple's, one thread uses a table at a time.
public final class NSMapTable<KeyType: AnyObject, ObjectType: AnyObject>: NSObject {
  /// An object that is held, or only known.
  private struct Reference<Object: AnyObject> {
    private let held: Object?
    private weak var known: Object?

    init(_ object: Object, isWeak: Bool) {
      held = isWeak ? nil : object
      known = object
    }

    var object: Object? { held ?? known }
  }

  private struct Entry {
    let key: Reference<KeyType>
    var value: Reference<ObjectType>

    var isGone: Bool { key.object == nil || value.object == nil }
  }

  private let hasWeakKeys: Bool
  private let hasWeakObjects: Bool
  /// The entries by the hashes of their keys, which must not change.
  private var entries: [Int: [Entry]] = [:]
  /// The number of changes until entries that are gone are removed.
  private var remaining = 16

  private init(hasWeakKeys: Bool, hasWeakObjects: Bool) {
    self.hasWeakKeys = hasWeakKeys
    self.hasWeakObjects = hasWeakObjects
    super.init()
  }

  /// A table that retains its keys and values.
  public class func strongToStrongObjects() -> NSMapTable {
    NSMapTable(hasWeakKeys: false, hasWeakObjects: false)
  }

  /// A table that retains its values alone.
  public class func weakToStrongObjects() -> NSMapTable {
    NSMapTable(hasWeakKeys: true, hasWeakObjects: false)
  }

  /// A table that retains its keys alone.
  public class func strongToWeakObjects() -> NSMapTable {
    NSMapTable(hasWeakKeys: false, hasWeakObjects: true)
  }

  /// A table that retains neither keys nor values.
  public class func weakToWeakObjects() -> NSMapTable {
    NSMapTable(hasWeakKeys: true, hasWeakObjects: true)
  }

  /// The number of entries whose keys and values exist.
  public var count: Int { live.count }

  /// The value of a key.
  public func object(forKey aKey: KeyType?) -> ObjectType? {
    guard let aKey else { return nil }
    return entries[Self.hash(of: aKey)]?.first { Self.areEqual($0.key.object, aKey) }?.value.object
  }

  /// Sets the value of a key; nil removes it.
  public func setObject(_ anObject: ObjectType?, forKey aKey: KeyType?) {
    guard let aKey else { return }
    removeObject(forKey: aKey)
    guard let anObject else { return }
    let entry = Entry(
      key: Reference(aKey, isWeak: hasWeakKeys),
      value: Reference(anObject, isWeak: hasWeakObjects)
    )
    entries[Self.hash(of: aKey), default: []].append(entry)
    remaining -= 1
    if remaining <= 0 { removeGone() }
  }

  /// Removes a key with its value.
  public func removeObject(forKey aKey: KeyType?) {
    guard let aKey else { return }
    let hash = Self.hash(of: aKey)
    let kept = entries[hash]?.filter { !$0.isGone && !Self.areEqual($0.key.object, aKey) } ?? []
    entries[hash] = kept.isEmpty ? nil : kept
  }

  /// Removes all entries.
  public func removeAllObjects() { entries = [:] }

  /// The keys, in no particular order.
  public func keyEnumerator() -> NSEnumerator {
    NSArray(array: live.compactMap(\.key.object)).objectEnumerator()
  }

  /// The values, in no particular order.
  public func objectEnumerator() -> NSEnumerator? {
    NSArray(array: live.compactMap(\.value.object)).objectEnumerator()
  }

  private var live: [Entry] { entries.values.flatMap { $0.filter { !$0.isGone } } }

  private func removeGone() {
    entries = entries.compactMapValues { entries in
      let kept = entries.filter { !$0.isGone }
      return kept.isEmpty ? nil : kept
    }
    // As many changes as there are entries: removing costs no more than adding did.
    remaining = max(16, entries.count)
  }

  private static func hash(of key: KeyType) -> Int {
    (key as? NSObject)?.hash ?? ObjectIdentifier(key).hashValue
  }

  private static func areEqual(_ known: KeyType?, _ key: KeyType) -> Bool {
    guard let known else { return false }
    if known === key { return true }
    return (known as? NSObject)?.isEqual(key) ?? false
  }
}
#endif
