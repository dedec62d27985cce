import Foundation
import Synchronization

/// A typed accessor for one property of an object: the fast path for classes written by hand or by
/// a generator.
///
/// The property's slot is looked up once for each entity and kept, so an access costs no
/// dictionary and no box. Keep one for each property of a class:
///
/// ```swift
/// final class Chapter: NSManagedObject {
///   private static let titleProperty = ManagedProperty<String?>("title")
///   var title: String? {
///     get { self[Self.titleProperty] }
///     set { self[Self.titleProperty] = newValue }
///   }
/// }
/// ```
///
/// Setting a relationship keeps its inverse true, as `setValue(_:forKey:)` does.
public struct ManagedProperty<Value: ManagedValue>: Sendable {
  /// The name of the property in the model.
  public let key: String
  @usableFromInline let cache = SlotCache()

  /// Names a property.
  public init(_ key: String) {
    self.key = key
  }
}

extension NSManagedObject {
  /// Reads or writes a property through its typed accessor.
  public final subscript<Value: ManagedValue>(_ property: ManagedProperty<Value>) -> Value {
    @inlinable
    get { Value.managedValue(of: self, at: slot(named: property.key, property.cache)) }
    @inlinable
    set { Value.setManagedValue(newValue, of: self, at: slot(named: property.key, property.cache)) }
  }

  /// The function is not generic, and the accessors above are inlined, so that an access from another
  /// module is a call of the type's own function.
  @usableFromInline
  final func slot(named key: String, _ cache: SlotCache) -> ManagedSlot {
    if let slot = cache.slot(for: templateReference) { return ManagedSlot(kind: slot) }
    let slot = namedSlot(key)
    cache.keep(slot.kind, for: templateReference)
    return slot
  }

  /// Reads a property by name with its type.
  public final func managedValue<Value: ManagedValue>(_ key: String) -> Value {
    Value.managedValue(of: self, at: namedSlot(key))
  }

  /// Writes a property by name with its type.
  public final func setManagedValue<Value: ManagedValue>(_ value: Value, _ key: String) {
    Value.setManagedValue(value, of: self, at: namedSlot(key))
  }

  private final func namedSlot(_ key: String) -> ManagedSlot {
    guard let slot = template.layout.slot(named: key) else {
      fatalError("The entity \(template.layout.entityName) has no property named '\(key)'.")
    }
    return ManagedSlot(kind: slot)
  }

  @inline(__always)
  final func scalar<Value: RowScalar>(at slot: ManagedSlot) -> Value? {
    guard case .attribute(let index) = slot.kind else { return nil }
    fireIfFault()
    return Value(row: value(at: index)) ?? convertedScalar(at: index)
  }

  /// A property whose Swift type differs from the model's, such as `Int` for a decimal.
  private final func convertedScalar<Value: RowScalar>(at index: Int) -> Value? {
    if value(at: index).isNull { return nil }
    return attributeValue(at: index) as? Value
  }

  @inline(__always)
  final func setScalar<Value: RowScalar>(_ value: Value, at slot: ManagedSlot) {
    guard case .attribute(let index) = slot.kind else { return }
    let row = value.row
    let type = templateReference._withUnsafeGuaranteedRef { $0.attributeTypes[index] }
    if row.fits(type) {
      setRowValue(row, at: index)
    } else {
      setAttributeValue(value, at: index)
    }
  }
}

extension RowValue {
  /// Whether the value can stand for an attribute of the type as it is.
  @inline(__always)
  func fits(_ type: NSAttributeType) -> Bool {
    switch self {
    case .string: type == .stringAttributeType
    case .integer:
      type == .integer64AttributeType || type == .integer32AttributeType
        || type == .integer16AttributeType || type == .booleanAttributeType
    case .double: type == .doubleAttributeType || type == .floatAttributeType
    case .date: type == .dateAttributeType
    case .data: type == .binaryDataAttributeType
    case .decimal: type == .decimalAttributeType
    case .uuid: type == .UUIDAttributeType
    case .url: type == .URIAttributeType
    case .null, .reference: true
    }
  }
}

/// The slots of one property in the last few entities for which it was looked up.
///
/// Each entry is one word, the template's address above the slot, so that it is read and written as
/// a whole without a lock.
@usableFromInline
final class SlotCache: Sendable {
  private let first = Atomic<UInt64>(0)
  private let second = Atomic<UInt64>(0)
  private let third = Atomic<UInt64>(0)
  private let fourth = Atomic<UInt64>(0)

  /// Addresses of user space have 48 bits; the other 16 hold the kind and the number of the slot.
  private static func tag(_ template: Unmanaged<ObjectTemplate>) -> UInt64 {
    UInt64(UInt(bitPattern: template.toOpaque())) << 16
  }

  @inline(__always)
  func slot(for template: Unmanaged<ObjectTemplate>) -> PropertySlot? {
    let tag = Self.tag(template)
    let mask: UInt64 = ~0xFFFF
    var word = first.load(ordering: .relaxed)
    if word & mask != tag {
      word = second.load(ordering: .relaxed)
      if word & mask != tag {
        word = third.load(ordering: .relaxed)
        if word & mask != tag {
          word = fourth.load(ordering: .relaxed)
          if word & mask != tag { return nil }
        }
      }
    }
    let index = Int(word & 0x3FFF)
    switch (word >> 14) & 3 {
    case 0: return .attribute(index)
    case 1: return .toOne(index)
    case 2: return .toMany(index)
    default: return .fetched(index)
    }
  }

  func keep(_ slot: PropertySlot, for template: Unmanaged<ObjectTemplate>) {
    let kind: UInt64
    let number: Int
    switch slot {
    case .attribute(let index): (kind, number) = (0, index)
    case .toOne(let index): (kind, number) = (1, index)
    case .toMany(let index): (kind, number) = (2, index)
    case .fetched(let index): (kind, number) = (3, index)
    }
    guard number < 0x4000 else { return }
    // The oldest entry is dropped; entries lost in a race are looked up again.
    fourth.store(third.load(ordering: .relaxed), ordering: .relaxed)
    third.store(second.load(ordering: .relaxed), ordering: .relaxed)
    second.store(first.load(ordering: .relaxed), ordering: .relaxed)
    first.store(Self.tag(template) | kind << 14 | UInt64(number), ordering: .relaxed)
  }
}
