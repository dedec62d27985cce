import ArgumentParser
import CloudKitServer
import Foundation

extension UsersCommand {
  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show one account: names, rights, devices, and the sizes of its databases."
    )

    @OptionGroup var person: PersonOptions

    struct Account: Encodable {
      var user: AccountDescription
      var devices: [DeviceDescription]
      var databases: [DatabaseUsage]
    }

    private struct Devices: Decodable { var devices: [DeviceDescription] }

    func run() async throws {
      try await perform("\(person.name) cannot be shown") {
        let account = try await person.server.connect { try await Self.read(person.name, $0) }
        try person.output.write(account, text: Self.text(account))
      }
    }

    static func read(_ name: String, _ server: AdminConnection) async throws -> Account {
      // The server finds the account, by its rules for names, or refuses the name.
      let devices: Devices = try await server.call(.users(.devices), ["userName": name])
      let all = try await List.allAccounts(server)
      let wanted = folded(name)
      guard let index = all.firstIndex(where: { folded($0.userName) == wanted }) else {
        throw CommandFailure(
          "NOT_FOUND",
          what: "\(name) cannot be shown",
          why: "the account was deleted while it was read",
          next: "watershed users list"
        )
      }
      let user = all[index]
      // The page of usage that starts after the account's predecessor, and has this account alone.
      let former = index > 0 ? all[index - 1].userName : nil
      let page: UsagePage = try await server.call(
        .usage(.list),
        AdminPage(after: former, limit: 1)
      )
      return Account(
        user: user,
        devices: devices.devices,
        databases: page.databases.filter { $0.userName == user.userName }
      )
    }

    private static func folded(_ name: String) -> String {
      name.precomposedStringWithCanonicalMapping.lowercased()
    }

    private static func text(_ account: Account) -> String {
      let user = account.user
      func date(_ milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000).formatted(.iso8601)
      }
      let facts: [(String, String?)] = [
        ("name", user.userName), ("given name", user.givenName),
        ("family name", user.familyName), ("e-mail", user.emailAddress),
        ("telephone", user.phoneNumber), ("administrator", user.isAdministrator ? "yes" : "no"),
        ("second factor", user.hasSecondFactor == true ? "yes" : "no"),
        ("may sign in", user.isDisabled || user.deletedAt != nil ? "no" : "yes"),
        ("deleted", user.deletedAt.map(date)), ("sessions", "\(user.sessions)"),
      ]
      let lines = facts.compactMap { name, value in
        value.flatMap { $0.isEmpty ? nil : "\(name): \($0)" }
      }
      let devices = account.devices.map {
        "device \($0.id): \($0.device), \($0.container), last used \(date($0.used))"
      }
      let databases = account.databases.map {
        "database: \($0.container) \($0.environment.rawValue) \($0.database.rawValue), "
          + "\($0.bytes) bytes, \(Count.of($0.files, "file"))"
      }
      return (lines + devices + databases).joined(separator: "\n")
    }
  }
}
