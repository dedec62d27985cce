import CloudKitServer
import CloudKitServerHTTP
import Foundation
import OpenCloudKit
import Testing

/// The two transports between a client and a service.
enum TransportKind: String, CaseIterable, CustomTestStringConvertible {
  case sockets
  case process

  var testDescription: String {
    switch self {
    case .sockets: "over sockets"
    case .process: "in the process"
    }
  }

  /// Runs the body with a service that several users use through this transport.
  func run(_ body: (Place) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder) { cloud in
        try await body(Place(cloud: cloud, transport: self))
      }
    }
  }

  /// A service and its transport.
  struct Place {
    let cloud: TestCloud
    let transport: TransportKind

    /// A device of a user, whose account is created with the first one.
    func device(of person: String, named name: String? = nil) async throws -> CKContainer {
      let service = cloud.service
      if try !service.accounts.has(named: person) {
        _ = try await service.createAccount(
          userName: person,
          password: "a good password",
          givenName: person.capitalized,
          emailAddress: "\(person)@example.org"
        )
      }
      let token = try await service.signIn(userName: person, container: TestCloud.container)
      return CKContainer(
        identifier: TestCloud.container,
        configuration: CKContainerConfiguration(
          url: URL(string: cloud.url),
          apiToken: cloud.apiToken,
          webAuthToken: token
        ),
        transport: transport == .sockets
          ? nil : InProcessTransport { await service.respond(to: $0) },
        clientIdentifier: name ?? person
      )
    }
  }
}
