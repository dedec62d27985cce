import CloudKit
import CoreData
import Foundation
import Testing

/// The examples of README.md and Documentation; compiled and not run: they connect to a server, or write
/// to the user's own folder.
enum PageExamples {
  // The page shows six lines, as they are.
  // swift-format-ignore
  @MainActor
  private static func sixLines() throws {
    // example: README, six lines that save
let container = NSPersistentContainer(name: "Model")
container.loadPersistentStores { _, error in if let error { fatalError("\(error)") } }
let post = NSEntityDescription.insertNewObject(forEntityName: "Post", into: container.viewContext)
post.setValue("Hello", forKey: "title")
try container.viewContext.save()
print(try container.viewContext.count(for: NSFetchRequest<NSManagedObject>(entityName: "Post")))  // 1 at the first run
    // end
  }

  // The page shows ten lines, as they are.
  // swift-format-ignore
  @MainActor
  private static func tenLines() throws {
    // example: README, ten lines that sync
CKContainer.configure(CKContainerConfiguration(
  url: URL(string: "http://127.0.0.1:8080"), containerIdentifiers: ["iCloud.org.example.app"],
  apiToken: "…", webAuthToken: "…"))
let container = NSPersistentCloudKitContainer(name: "Model")
container.persistentStoreDescriptions.first?.cloudKitContainerOptions =
  NSPersistentCloudKitContainerOptions(containerIdentifier: "iCloud.org.example.app")
container.loadPersistentStores { _, error in if let error { fatalError("\(error)") } }
let post = NSEntityDescription.insertNewObject(forEntityName: "Post", into: container.viewContext)
post.setValue("Hello", forKey: "title")
try container.viewContext.save()
RunLoop.main.run()  // sync runs in the background; a program that ends here sends the change at its next start
    // end
  }

  // As the page shows it.
  // swift-format-ignore
  private static func configure() {
    // example: Clients, configuring a container
    CKContainer.configure(CKContainerConfiguration(
      url: URL(string: "https://cloud.example.org"),
      containerIdentifiers: ["iCloud.org.example.app"],
      environment: .production,
      apiToken: "TOKEN"))
    // end
  }

  private static func signIn(_ userName: String, _ password: String) async throws {
    // example: CKContainer
    CKContainer.configure(
      CKContainerConfiguration(
        url: URL(string: "https://cloud.example.org"),
        containerIdentifiers: ["iCloud.org.example.app"],
        environment: .production,
        apiToken: "TOKEN"
      )
    )
    let container = CKContainer.default()
    try await container.signIn(userName: userName, password: password)
    let status = try await container.accountStatus()
    print(status == .available)
    // end
  }

  private static func deviceSignIn() async throws {
    // example: CKDeviceSignIn
    let signIn = try await CKContainer.default().beginDeviceSignIn()
    print("Open \(signIn.verificationURL.absoluteString) and type \(signIn.userCode)")
    try await signIn.wait()
    // end
  }

  private final class Company: NSManagedObject {}

  private static func wholeClassName(_ entity: NSEntityDescription) {
    // example: MovingAPackage, the whole name of a class
    entity.managedObjectClassName = NSStringFromClass(Company.self)  // "Blog.Company"
    // end
  }
}
