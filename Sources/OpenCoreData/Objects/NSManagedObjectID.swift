import Foundation

/// Identifies an object, in every context and between launches.
///
/// ```swift
/// let objectID = post.objectID
/// let other = container.newBackgroundContext()
/// try other.performAndWait {
///   let same = try other.existingObject(with: objectID)
///   same.setValue(true, forKey: "isRead")
///   try other.save()
/// }
/// ```
///
/// An object has a temporary identifier until it is saved for the first time.
open class NSManagedObjectID: NSObject, NSCopying, NSFetchRequestResult, @unchecked Sendable {
  // Sendable: immutable.

  let key: ObjectKey
  let binding: StoreBinding?
  let template: ObjectTemplate

  init(key: ObjectKey, binding: StoreBinding?, template: ObjectTemplate) {
    self.key = key
    self.binding = binding
    self.template = template
    super.init()
  }

  /// Creates an identifier that names no object, as tests do that need any identifier.
  ///
  /// It is temporary, its entity has no name, and it equals itself alone.
  public override convenience init() {
    self.init(key: .temporary(), binding: nil, template: Self.nameless)
  }

  /// The template of identifiers of no object, in place of an entity of a model.
  private static let nameless: ObjectTemplate = {
    let entity = NSEntityDescription()
    // A layout does not count its entity, as models live as long as the process; so does this one.
    return ObjectTemplate.of(
      EntityLayout(entity: Unmanaged.passRetained(entity).takeUnretainedValue())
    )
  }()

  /// The entity of the object.
  open var entity: NSEntityDescription { template.layout.entity }

  /// Whether the object has not been saved yet and has no lasting identifier.
  open var isTemporaryID: Bool { key.isTemporary }

  /// The store that holds the object.
  open var persistentStore: NSPersistentStore? {
    isTemporaryID ? nil : binding?.persistentStore
  }

  /// The row that the identifier stands for; nil while it is temporary.
  package var reference: RowReference? { isTemporaryID ? nil : key.reference }

  /// A URL that names the object between launches.
  open func uriRepresentation() -> URL {
    let name = template.layout.entityName
    let text =
      isTemporaryID
      ? "x-coredata:///\(name)/t\(-key.reference.key)"
      : "x-coredata://\(binding?.identifier ?? "")/\(name)/p\(referenceName)"
    var components = URLComponents()
    components.scheme = "x-coredata"
    // An entity's name is a Swift or Objective-C identifier, so the text is always a URL.
    return URL(string: text) ?? components.url ?? URL(fileURLWithPath: text)
  }

  /// The row's key, or what a custom store knows the object by, as part of a URL.
  private var referenceName: String {
    guard let binding, binding.isCustom else { return "\(key.reference.key)" }
    let name = binding.name(of: key.reference.key)
    let allowed = CharacterSet.urlPathAllowed.subtracting(CharacterSet(charactersIn: "/:"))
    return name.addingPercentEncoding(withAllowedCharacters: allowed) ?? name
  }

  open override var hash: Int {
    Int(truncatingIfNeeded: key.reference.key &* 31 &+ Int64(key.reference.entityNumber))
  }

  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? NSManagedObjectID else { return false }
    if self === other { return true }
    guard key.reference == other.key.reference else { return false }
    return key.store == other.key.store || binding?.identifier == other.binding?.identifier
  }

  /// The identifier itself: it never changes.
  open func copy(with zone: NSZone? = nil) -> Any { self }

  open override var description: String {
    "0x\(String(UInt(bitPattern: hash), radix: 16)) <\(uriRepresentation().absoluteString)>"
  }

  // MARK: For predicates

  /// Equal for the object and its identifier.
  package var comparisonIdentifier: AnyHashable { AnyHashable(self) }
}

extension NSManagedObjectID: ObjectIdentified {}
