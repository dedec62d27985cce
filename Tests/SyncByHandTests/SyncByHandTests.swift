import CloudKit
import CloudKitServer
import CoreData
import Foundation
import Testing

import OpenCloudKit

@Suite("An app with its own sync code, written for Apple's frameworks")
struct SyncByHandTests {
  /// One device: its own store, and the user's account.
  private struct Device {
    let container: NSPersistentContainer
    let context: NSManagedObjectContext
    let sync: HandSync
  }

  private static let containerIdentifier = "iCloud.org.example.mustc"

  private func device(
    _ service: CloudKitService,
    _ configuration: CKContainerConfiguration,
    _ folder: URL,
    _ name: String
  ) async throws -> Device {
    let container = NSPersistentContainer(name: "MustC")
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: folder.appendingPathComponent("\(name).sqlite"))
    ]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    let cloud = CKContainer(
      identifier: Self.containerIdentifier,
      configuration: configuration,
      transport: InProcessTransport { await service.respond(to: $0) },
      effects: .live
    )
    let sync = HandSync(database: cloud.privateCloudDatabase)
    try await sync.prepare()
    return Device(container: container, context: container.newBackgroundContext(), sync: sync)
  }

  @Test("Objects, references and edits sync through records that the app creates itself")
  func travel() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("mustc-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let service = try CloudKitService(ServiceConfiguration())
    try await service.createAccount(userName: "anna", password: "correct horse")
    let configuration = CKContainerConfiguration(
      url: URL(string: "http://127.0.0.1"),
      containerIdentifiers: [Self.containerIdentifier],
      apiToken: try await service.bootstrapAPIToken(),
      webAuthToken: try await service.signIn(
        userName: "anna",
        container: Self.containerIdentifier
      )
    )
    let phone = try await device(service, configuration, folder, "phone")
    let tablet = try await device(service, configuration, folder, "tablet")

    try await phone.context.perform {
      let context = phone.context
      let titles = ["Rain Man", "Waterworld"]
      let movies = titles.enumerated().map { index, title in
        let movie = Movie(context: context)
        movie.recordName = UUID().uuidString
        movie.title = title
        movie.popularity = 7.5 + Double(index)
        movie.remoteId = Int64(index) + 1
        return movie
      }
      let member = FamilyMember(context: context)
      member.recordName = UUID().uuidString
      member.name = "Anna"
      member.movies = NSSet(array: movies)
      try context.save()
    }
    try await phone.sync.push(phone.context)
    try await tablet.sync.pull(tablet.context)

    let seen = try await tablet.context.perform {
      let members: [FamilyMember] = try tablet.context.fetch(FamilyMember.fetchRequest())
      let member = try #require(members.first)
      let movies = try #require(member.movies as? Set<Movie>)
      return (member.name, movies.compactMap(\.title).sorted(), movies.map(\.popularity).sorted())
    }
    #expect(seen.0 == "Anna")
    #expect(seen.1 == ["Rain Man", "Waterworld"])
    #expect(seen.2 == [7.5, 8.5])

    // The edit is sent with the stored system fields, so the server treats it as an update.
    try await tablet.context.perform {
      let request: NSFetchRequest<Movie> = Movie.fetchRequest()
      request.predicate = NSPredicate(format: "title == %@", "Waterworld")
      try tablet.context.fetch(request).first?.title = "Waterworld (1995)"
      try tablet.context.save()
    }
    try await tablet.sync.push(tablet.context)
    try await phone.sync.pull(phone.context)
    let titles = try await phone.context.perform {
      let movies: [Movie] = try phone.context.fetch(Movie.fetchRequest())
      return movies.compactMap(\.title).sorted()
    }
    #expect(titles == ["Rain Man", "Waterworld (1995)"])

    // A save with an older change tag than the server's is refused, as apps of the chapter must
    // handle.
    try await tablet.context.perform {
      let movies: [Movie] = try tablet.context.fetch(Movie.fetchRequest())
      for movie in movies { movie.popularity = 1 }
      try tablet.context.save()
    }
    try await phone.sync.push(phone.context)
    await #expect(throws: CKError.self) { try await tablet.sync.push(tablet.context) }
    await service.shutdown()
  }
}
