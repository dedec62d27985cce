import ArgumentParser
import CloudKitServer
import Foundation

/// `watershed users`: the users of a server.
struct UsersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "users",
    abstract: "The accounts of users: list, show, add, change, delete, sign in and out.",
    subcommands: [
      List.self, Show.self, Add.self, Update.self, Delete.self, Restore.self, ResetPassword.self,
      RemoveFactor.self, Invite.self, SignIn.self, SignOut.self, Devices.self, Revoke.self,
    ]
  )

  /// The user of a command, and the server.
  struct PersonOptions: ParsableArguments {
    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Argument(help: "The name to sign in with.") var name: String
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List all accounts.")

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions

    private struct Reply: Decodable { var users: [AccountDescription] }

    func run() async throws {
      try await perform("the accounts cannot be listed") {
        let users = try await server.connect { try await Self.allAccounts($0) }
        try output.write(
          "users",
          users,
          columns: users.map { user in
            let notes = [
              user.isAdministrator ? "administrator" : nil,
              user.hasSecondFactor == true ? "second factor" : nil,
              user.deletedAt != nil ? "deleted" : user.isDisabled ? "disabled" : nil,
            ].compactMap(\.self)
            return [
              user.userName, user.emailAddress ?? "", notes.joined(separator: ", "),
              "\(user.sessions)",
            ]
          },
          titles: ["name", "e-mail", "notes", "sessions"]
        )
      }
    }

    /// The largest page that the server sends.
    private static let pageSize = 1000

    static func allAccounts(
      _ server: AdminConnection
    ) async throws -> [AccountDescription] {
      var users: [AccountDescription] = []
      while true {
        let page = AdminPage(after: users.last?.userName, limit: pageSize)
        let reply: Reply = try await server.call(.users(.list), page)
        users += reply.users
        guard reply.users.count == pageSize else { return users }
      }
    }
  }

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Add an account; the password is generated, or read from the standard input."
    )

    @OptionGroup var person: PersonOptions
    @Option(help: "The given name.") var givenName: String?
    @Option(help: "The family name.") var familyName: String?
    @Option(help: "The e-mail address by which other users find the account.") var email: String?
    @Flag(help: "May use the admin API.") var administrator = false
    @Flag(help: "Read the password from the standard input.") var passwordStdin = false

    private struct Body: Encodable {
      var userName: String
      var password: String
      var givenName: String?
      var familyName: String?
      var emailAddress: String?
      var isAdministrator: Bool
    }

    private struct Added: Encodable {
      var userName: String
      /// The password, if it was generated here.
      var password: String?
    }

    func run() async throws {
      try await perform("\(person.name) was not added") {
        let typed = passwordStdin ? readLine(strippingNewline: true) : nil
        if passwordStdin, typed?.isEmpty != false {
          throw ValidationError("There is no password on the standard input.")
        }
        let password = typed ?? PasswordMaker.password()
        let body = Body(
          userName: person.name,
          password: password,
          givenName: givenName,
          familyName: familyName,
          emailAddress: email,
          isAdministrator: administrator
        )
        let _: [String: String] = try await person.server.connect {
          try await $0.call(.users(.create), body)
        }
        let added = Added(userName: person.name, password: typed == nil ? password : nil)
        try person.output.write(
          added,
          text: "Added \(person.name)"
            + (typed == nil ? ", password \(password) (shown this once)." : ".")
        )
      }
    }
  }

  struct Update: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Change the names, the address or the rights of an account."
    )

    @OptionGroup var person: PersonOptions
    @Option(help: "The given name.") var givenName: String?
    @Option(help: "The family name.") var familyName: String?
    @Option(help: "The e-mail address.") var email: String?
    @Option(help: "The telephone number by which other users find the account; \"\" takes it away.")
    var phone: String?
    @Flag(inversion: .prefixedNo, help: "May use the admin API.") var administrator: Bool?
    @Flag(inversion: .prefixedEnableDisable, help: "May sign in.") var account: Bool?

    private struct Body: Encodable {
      var userName: String
      var changes: AccountChanges
    }

    func validate() throws {
      let texts = [givenName, familyName, email, phone]
      guard texts.allSatisfy({ $0 == nil }), administrator == nil, account == nil else { return }
      throw ValidationError("Name what to change, such as --email or --disable-account.")
    }

    func run() async throws {
      try await perform("\(person.name) was not changed") {
        let body = Body(
          userName: person.name,
          changes: AccountChanges(
            givenName: givenName,
            familyName: familyName,
            emailAddress: email,
            phoneNumber: phone,
            isAdministrator: administrator,
            isDisabled: account.map { !$0 }
          )
        )
        let _: NoReply = try await person.server.connect {
          try await $0.call(.users(.update), body)
        }
        try person.output.done("Changed \(person.name).", ["userName": person.name])
      }
    }
  }

  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract:
        "Disable an account at once and delete its data after thirty days, or now with --purge."
    )

    @OptionGroup var person: PersonOptions
    @OptionGroup var consent: ConsentOptions
    @Flag(help: "Delete the account's data now; it cannot be restored.") var purge = false

    private struct Body: Encodable {
      var userName: String
      var purge: Bool
    }

    func run() async throws {
      try await perform("\(person.name) was not deleted") {
        let deed =
          purge ? try await purgeDeed() : "disable the account \(person.name)"
        guard try consent.isGiven(to: deed, person.output) else { return }
        let body = Body(userName: person.name, purge: purge)
        let _: NoReply = try await person.server.connect {
          try await $0.call(.users(.delete), body)
        }
        try person.output.done(
          purge
            ? "Removed \(person.name)." : "Disabled \(person.name); `users restore` reverses it.",
          ["userName": person.name]
        )
      }
    }

    /// A description of the deletion, with the sizes of the databases that are lost.
    private func purgeDeed() async throws -> String {
      let databases = try await person.server.connect {
        try await Show.read(person.name, $0).databases
      }
      return "remove \(person.name) and all data (\(databases.summary)) for good"
    }
  }

  struct Restore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Restore a deleted account that was not purged yet."
    )

    @OptionGroup var person: PersonOptions

    func run() async throws {
      try await perform("\(person.name) was not restored") {
        let _: NoReply = try await person.server.connect {
          try await $0.call(.users(.restore), ["userName": person.name])
        }
        try person.output.done("\(person.name) may sign in again.", ["userName": person.name])
      }
    }
  }
}
