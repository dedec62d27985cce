// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CoreData

// The classes that Xcode generates for the model, with explicit accessors where Xcode writes
// `@NSManaged`.

public class FamilyMember: NSManagedObject {
  private static let cloudKitDataProperty = ManagedProperty<Data?>("cloudKitData")
  private static let nameProperty = ManagedProperty<String?>("name")
  private static let recordNameProperty = ManagedProperty<String?>("recordName")
  private static let moviesProperty = ManagedProperty<NSSet?>("movies")

  public class func fetchRequest() -> NSFetchRequest<FamilyMember> {
    NSFetchRequest<FamilyMember>(entityName: "FamilyMember")
  }

  public var cloudKitData: Data? {
    get { self[Self.cloudKitDataProperty] }
    set { self[Self.cloudKitDataProperty] = newValue }
  }
  public var name: String? {
    get { self[Self.nameProperty] }
    set { self[Self.nameProperty] = newValue }
  }
  public var recordName: String? {
    get { self[Self.recordNameProperty] }
    set { self[Self.recordNameProperty] = newValue }
  }
  public var movies: NSSet? {
    get { self[Self.moviesProperty] }
    set { self[Self.moviesProperty] = newValue }
  }
}

public class Movie: NSManagedObject {
  private static let cloudKitDataProperty = ManagedProperty<Data?>("cloudKitData")
  private static let popularityProperty = ManagedProperty<Double>("popularity")
  private static let recordNameProperty = ManagedProperty<String?>("recordName")
  private static let remoteIdProperty = ManagedProperty<Int64>("remoteId")
  private static let titleProperty = ManagedProperty<String?>("title")
  private static let familyMembersProperty = ManagedProperty<NSSet?>("familyMembers")

  public class func fetchRequest() -> NSFetchRequest<Movie> {
    NSFetchRequest<Movie>(entityName: "Movie")
  }

  public var cloudKitData: Data? {
    get { self[Self.cloudKitDataProperty] }
    set { self[Self.cloudKitDataProperty] = newValue }
  }
  public var popularity: Double {
    get { self[Self.popularityProperty] }
    set { self[Self.popularityProperty] = newValue }
  }
  public var recordName: String? {
    get { self[Self.recordNameProperty] }
    set { self[Self.recordNameProperty] = newValue }
  }
  public var remoteId: Int64 {
    get { self[Self.remoteIdProperty] }
    set { self[Self.remoteIdProperty] = newValue }
  }
  public var title: String? {
    get { self[Self.titleProperty] }
    set { self[Self.titleProperty] = newValue }
  }
  public var familyMembers: NSSet? {
    get { self[Self.familyMembersProperty] }
    set { self[Self.familyMembersProperty] = newValue }
  }
}
