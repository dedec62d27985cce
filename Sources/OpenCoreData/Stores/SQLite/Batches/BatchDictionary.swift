import Foundation

/// The dictionary that a batch's handler fills: it stores values unconverted, by the slot of their
/// attribute, and converts no key or value to an object.
final class BatchDictionary: NSMutableDictionary {
  /// Values by slot.
  private(set) var raw: [Any?]
  /// Entries whose keys are no attributes, which the handler can read back.
  private var others: [AnyHashable: Any] = [:]
  private let attributes: BatchAttributes?

  init(_ attributes: BatchAttributes) {
    self.attributes = attributes
    raw = Array(repeating: nil, count: attributes.width)
    super.init(objects: nil, forKeys: nil, count: 0)
  }

  required init(
    objects: UnsafePointer<AnyObject>?,
    forKeys keys: UnsafePointer<NSObject>?,
    count: Int
  ) {
    attributes = nil
    raw = []
    super.init(objects: nil, forKeys: nil, count: 0)
    for index in 0..<count {
      if let object = objects?[index], let key = keys?[index] { others[key] = object }
    }
  }

  required convenience init?(coder: NSCoder) {
    self.init(objects: nil, forKeys: nil, count: 0)
  }

  /// Swaps the values with others, for the next row.
  func exchangeValues(with others: inout [Any?]) {
    swap(&raw, &others)
  }

  private var givenSlots: [Int] { raw.indices.filter { raw[$0] != nil } }

  private func slot(of key: Any) -> Int? {
    let key = (key as? AnyHashable)?.base ?? key
    return (key as? String).flatMap { attributes?.slot(of: $0) }
  }

  override var count: Int { givenSlots.count + others.count }

  override func object(forKey aKey: Any) -> Any? {
    if let slot = slot(of: aKey) { return raw[slot] }
    return (aKey as? AnyHashable).flatMap { others[$0] }
  }

  override func keyEnumerator() -> NSEnumerator {
    let names = givenSlots.compactMap { attributes?.name(of: $0) }
    return NSArray(array: names + others.keys.map(\.base)).objectEnumerator()
  }

  override func setObject(_ anObject: Any, forKey aKey: AnyHashable) {
    if let slot = slot(of: aKey) {
      raw[slot] = anObject
      return
    }
    others[aKey] = anObject
    // A composite's value that is no dictionary can be read back, but cannot be stored.
    let composite = (aKey.base as? String).flatMap { attributes?.composite(named: $0) }
    for (slot, value) in composite?.leafValues(of: anObject) ?? [] { raw[slot] = value }
  }

  override func removeObject(forKey aKey: Any) {
    if let slot = slot(of: aKey) {
      raw[slot] = nil
    } else if let key = aKey as? AnyHashable {
      others[key] = nil
    }
  }

  override func removeAllObjects() {
    for slot in raw.indices { raw[slot] = nil }
    if !others.isEmpty { others = [:] }
  }
}
