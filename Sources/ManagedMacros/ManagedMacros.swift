/// Generates the table of names of a class's `@Managed` properties.
///
/// Key paths need it: sort descriptors, `#Predicate` and observation look up the name of
/// `\Post.title` in it.
///
/// ```swift
/// @ManagedObject
/// final class Book: NSManagedObject {
///   @Managed var title: String?
///   @Managed var tags: Set<Tag>
///   @Managed var author: Author?
/// }
/// ```
///
/// - Note: **Differs from Core Data:** Core Data has `@NSManaged`, which the build plugin
///   `CoreDataModels` supports as it is. The macros need no plugin and no generated file.
@attached(member, names: named(keyPathNames))
public macro ManagedObject() =
  #externalMacro(module: "ManagedMacroPlugin", type: "ManagedObjectMacro")

/// Makes a property a modelled one: its accessors read and write the object's stored values.
///
/// ```swift
/// @ManagedObject
/// final class Book: NSManagedObject {
///   @Managed var title: String?
///   @Managed var tags: Set<Tag>
///   @Managed var author: Author?
/// }
/// ```
///
/// Its type is any that `ManagedAccessor` supports: scalars, strings, dates and their optionals,
/// objects, sets of objects, enumerations with raw values, and the values of transformers.
///
/// - Parameter key: The name in the model, if it differs from the property's.
@attached(accessor)
@attached(peer, names: prefixed(_accessor_))
public macro Managed(_ key: String? = nil) =
  #externalMacro(module: "ManagedMacroPlugin", type: "ManagedMacro")
