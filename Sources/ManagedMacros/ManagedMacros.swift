/// Makes a class of managed objects say the names of its `@Managed` properties.
///
/// It is what key paths need: sort descriptors, `#Predicate` and observation find the name of
/// `\Post.title` by it.
///
///     @ManagedObject
///     final class Post: NSManagedObject {
///       @Managed var title: String?
///       @Managed var tags: Set<Tag>
///       @Managed var author: Author?
///     }
///
/// - Note: **Differs from Core Data:** Core Data has `@NSManaged`, which the build plugin
///   `CoreDataModels` supports as it is. The macros need no plugin and no generated file.
@attached(member, names: named(keyPathNames))
public macro ManagedObject() =
  #externalMacro(module: "ManagedMacroPlugin", type: "ManagedObjectMacro")

/// Makes a property one of the model's: it is read and written by its slot.
///
/// The type is any that `ManagedDoor` has a door for: scalars, strings, dates, their optionals,
/// objects, sets of objects, enumerations with raw values, and what transformers give.
///
/// - Parameter key: The name in the model, where it differs from the property's.
@attached(accessor)
@attached(peer, names: prefixed(_door_))
public macro Managed(_ key: String? = nil) =
  #externalMacro(module: "ManagedMacroPlugin", type: "ManagedMacro")
