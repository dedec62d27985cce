import Effects
import Foundation

/// How the objects of one model become objects of another.
///
/// ```swift
/// let mapping = try NSMappingModel.inferredMappingModel(
///   forSourceModel: oldModel,
///   destinationModel: newModel
/// )
/// print(mapping.entityMappings.map(\.name))
/// ```
open class NSMappingModel: NSObject {
  /// The mappings of entities, in the order in which they are executed.
  // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
  open var entityMappings: [NSEntityMapping]! = []

  /// Whether the mapping was inferred from the two models, so that it can be executed in place with
  /// SQL.
  package internal(set) var isInferred = false

  /// Creates a mapping model without mappings.
  public required override init() {
    super.init()
  }

  /// Reads a mapping model, compiled (`.cdm`) or as Xcode writes it (`.xcmappingmodel`); nil when it
  /// cannot be read.
  ///
  /// The reason is written to standard error.
  public convenience init?(contentsOf url: URL?) {
    guard let url else { return nil }
    do {
      let contents = try MappingFile.load(contentsOf: url)
      self.init()
      entityMappings = contents.mappings
    } catch {
      StandardError.print("CoreData: error: \(error)")
      return nil
    }
  }

  /// Finds the mapping model between two models in bundles; nil searches the app's own bundles.
  ///
  /// A mapping model matches two models if the version hashes of its entities are theirs; one that
  /// Xcode has not compiled, if it has the names of their versions. If a file cannot be read the
  /// result is nil, and the reason is written to standard error.
  public convenience init?(
    from bundles: [Bundle]?,
    forSourceModel sourceModel: NSManagedObjectModel?,
    destinationModel: NSManagedObjectModel?
  ) {
    guard let sourceModel, let destinationModel else { return nil }
    do {
      let found = try MappingFile.mappings(in: bundles, from: sourceModel, to: destinationModel)
      guard let found else { return nil }
      self.init()
      entityMappings = found
    } catch {
      StandardError.print("CoreData: error: \(error)")
      return nil
    }
  }

  /// The mapping model between two models in the app's own bundles; nil where there is none.
  static func found(
    from source: NSManagedObjectModel,
    to destination: NSManagedObjectModel
  ) throws -> NSMappingModel? {
    guard let mappings = try MappingFile.mappings(in: nil, from: source, to: destination) else {
      return nil
    }
    let found = NSMappingModel()
    found.entityMappings = mappings
    return found
  }

  /// The mappings of entities by name.
  open var entityMappingsByName: [String: NSEntityMapping] {
    Dictionary(
      (entityMappings ?? []).map { ($0.name ?? "", $0) },
      uniquingKeysWith: { first, _ in first }
    )
  }

  /// Infers the mapping between two models whose differences a lightweight migration can bridge.
  ///
  /// Throws `NSInferredMappingModelError` otherwise, with the entity and the property in the way
  /// under the keys `entity` and `property`, and the `reason`. An attribute may become another type
  /// of number, between the integers, Boolean, Float and Double; other types need a mapping model of
  /// the app's.
  ///
  /// **Differs from Core Data:** a number that does not fit its new type, such as 70,000 in an
  /// Integer 16 or 1.5 in an integer, is not truncated: the migration throws `NSMigrationError` and
  /// leaves the store unchanged. A Double that becomes a Float stays unchanged in the file and
  /// reads rounded.
  open class func inferredMappingModel(
    forSourceModel sourceModel: NSManagedObjectModel,
    destinationModel: NSManagedObjectModel
  ) throws -> NSMappingModel {
    let difference = try ModelDifference(
      from: sourceModel.entities,
      to: destinationModel.entities
    )
    let model = NSMappingModel()
    model.entityMappings = InferredMappings(difference: difference).all()
    model.isInferred = true
    return model
  }

  /// Mapping models with equal mappings in the same order are equal.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? NSMappingModel else { return false }
    return other === self || (entityMappings ?? []) == (other.entityMappings ?? [])
  }

  open override var hash: Int { (entityMappings ?? []).count }

  open override var description: String { "<NSMappingModel: \(entityMappings ?? [])>" }
}
