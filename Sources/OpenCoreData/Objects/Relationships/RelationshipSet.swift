import Foundation

/// The set that `mutableSetValue(forKey:)` hands out: a window on a relationship.
final class RelationshipSet: NSMutableSet {
  private let object: NSManagedObject
  private let index: Int

  init(object: NSManagedObject, index: Int) {
    self.object = object
    self.index = index
    super.init(capacity: 0)
  }

  required init(capacity numItems: Int) {
    preconditionFailure(
      "This class cannot be initialized; get the set from a managed object's relationship."
    )
  }

  required init?(coder aDecoder: NSCoder) { nil }

  private var members: [NSManagedObject] { object.publicMembers(at: index) }

  override var count: Int { members.count }

  override var allObjects: [Any] { members }

  override func member(_ object: Any) -> Any? {
    guard let object = object as? NSManagedObject else { return nil }
    return self.object.publicMembersContain(object, at: index) ? object : nil
  }

  override func objectEnumerator() -> NSEnumerator {
    NSArray(array: members).objectEnumerator()
  }

  override func add(_ object: Any) {
    guard let member = object as? NSManagedObject else {
      fatalError("Unacceptable type of value for to-many relationship: value = \(object).")
    }
    self.object.addToMany(member, at: index)
  }

  override func remove(_ object: Any) {
    guard let member = object as? NSManagedObject else { return }
    self.object.removeFromMany(member, at: index)
  }

  override func removeAllObjects() {
    object.setToMany([], at: index)
  }

  override func setSet(_ otherSet: Set<AnyHashable>) {
    object.setToMany(otherSet.compactMap { $0.base as? NSManagedObject }, at: index)
  }

  // Foundation's own would look into storage of its own, which is empty here.
  override var description: String { NSSet(array: members).description }

  override func copy(with zone: NSZone? = nil) -> Any { NSSet(array: members) }

  override func mutableCopy(with zone: NSZone? = nil) -> Any { NSMutableSet(array: members) }
}
