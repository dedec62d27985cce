/// Lets a metatype create objects, as `T(context: context)` does in a generic function.
///
/// On Apple's platforms every initializer of `NSManagedObject` can be called on a metatype. In Swift
/// alone only a required one can, and a class that overrides `init(entity:insertInto:)` would have to
/// say `required` too. These initializers take over where the class's own cannot be called; they are
/// generic, so that the class's own come first everywhere else.
public protocol ManagedObjectCreating: NSManagedObject {}

extension NSManagedObject: ManagedObjectCreating {}

extension ManagedObjectCreating {
  /// Creates an object of the class's entity and inserts it into a context.
  public init<Context: NSManagedObjectContext>(context moc: Context) {
    self.init(_entity: moc.entity(of: Self.self), insertInto: moc)
  }

  /// Creates an object of an entity and inserts it into a context, unless that is nil.
  public init<Entity: NSEntityDescription>(
    entity: Entity,
    insertInto context: NSManagedObjectContext?
  ) {
    self.init(_entity: entity, insertInto: context)
  }
}
