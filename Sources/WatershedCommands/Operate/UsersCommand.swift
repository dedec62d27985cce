import ArgumentParser
import CloudKitServer
import Foundation

/// `watershed users`: the people of a server.
struct UsersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "users",
    abstract: "The people who may sign in: list, add, change, delete, sign in and out.",
    subcommands: [
      List.self, Add.self, Update.self, Delete.self, Restore.self, ResetPassword.self,
      Invite.self, SignIn.self, SignOut.self, Devices.self, Revoke.self,
    ]
  )

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List everybody.")

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions

    private struct Reply: Decodable { var users: [CloudKitService.AccountDescription] }

    func run() async throws {
      try await perform("the people cannot be listed") {
        let reply: Reply = try await server.connect { try await $0.call("users/list", NoReply()) }
        try output.write(
          "users",
          reply.users,
          columns: reply.users.map { user in
            let notes = [
              user.isAdministrator ? "administrator" : nil,
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
  }

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Add a person; the password is made, or read from the standard input."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Argument(help: "The name to sign in with.") var name: String
    @Option(help: "The given name.") var givenName: String?
    @Option(help: "The family name.") var familyName: String?
    @Option(help: "The e-mail address that others find the person by.") var email: String?
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
      /// Only where it was made here.
      var password: String?
    }

    func run() async throws {
      try await perform("\(name) was not added") {
        let typed = passwordStdin ? readLine(strippingNewline: true) : nil
        let password = typed ?? PasswordMaker.password()
        let body = Body(
          userName: name,
          password: password,
          givenName: givenName,
          familyName: familyName,
          emailAddress: email,
          isAdministrator: administrator
        )
        let _: [String: String] = try await server.connect {
          try await $0.call("users/create", body)
        }
        let added = Added(userName: name, password: typed == nil ? password : nil)
        try output.write(
          added,
          text: "Added \(name)" + (typed == nil ? ", password \(password) (shown this once)." : ".")
        )
      }
    }
  }

  struct Update: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Change a person's names, address or rights."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Argument(help: "The name to sign in with.") var name: String
    @Option(help: "The given name.") var givenName: String?
    @Option(help: "The family name.") var familyName: String?
    @Option(help: "The e-mail address.") var email: String?
    @Option(help: "The telephone number that others find the person by; \"\" takes it away.")
    var phone: String?
    @Flag(inversion: .prefixedNo, help: "May use the admin API.") var administrator: Bool?
    @Flag(inversion: .prefixedEnableDisable, help: "May sign in.") var account: Bool?

    private struct Body: Encodable {
      var userName: String
      var changes: CloudKitService.AccountChanges
    }

    func run() async throws {
      try await perform("\(name) was not changed") {
        let body = Body(
          userName: name,
          changes: CloudKitService.AccountChanges(
            givenName: givenName,
            familyName: familyName,
            emailAddress: email,
            phoneNumber: phone,
            isAdministrator: administrator,
            isDisabled: account.map { !$0 }
          )
        )
        let _: NoReply = try await server.connect { try await $0.call("users/update", body) }
        output.remark("Changed \(name).")
      }
    }
  }

  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Shut an account at once; what it owns goes after thirty days, or now with --purge."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var consent: ConsentOptions
    @Argument(help: "The name to sign in with.") var name: String
    @Flag(help: "Remove everything of the account now; nothing brings it back.") var purge = false

    private struct Body: Encodable {
      var userName: String
      var purge: Bool
    }

    func run() async throws {
      try await perform("\(name) was not deleted") {
        let deed = purge ? "remove \(name) and all data for good" : "shut the account \(name)"
        guard try consent.isGiven(to: deed, output) else { return }
        let body = Body(userName: name, purge: purge)
        let _: NoReply = try await server.connect { try await $0.call("users/delete", body) }
        output.remark(purge ? "Removed \(name)." : "Shut \(name); `users restore` takes it back.")
      }
    }
  }

  struct Restore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Take back a deletion whose purge has not come yet."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Argument(help: "The name to sign in with.") var name: String

    func run() async throws {
      try await perform("\(name) was not restored") {
        let _: NoReply = try await server.connect {
          try await $0.call("users/restore", ["userName": name])
        }
        output.remark("\(name) may sign in again.")
      }
    }
  }

  struct ResetPassword: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "reset-password",
      abstract: "Print a link with which the person chooses a new password, once within an hour."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Argument(help: "The name to sign in with.") var name: String

    func run() async throws {
      try await perform("no link was made for \(name)") {
        let reply: [String: String] = try await server.connect {
          try await $0.call("users/reset-password", ["userName": name])
        }
        try output.write(reply, text: reply["url"] ?? "")
      }
    }
  }

  struct Invite: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print a link with which somebody makes an account, once within a week."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Flag(help: "The account may use the admin API.") var administrator = false

    func run() async throws {
      try await perform("no invitation was made") {
        let reply: [String: String] = try await server.connect {
          try await $0.call("invitations/create", ["isAdministrator": administrator])
        }
        try output.write(reply, text: reply["url"] ?? "")
      }
    }
  }

  struct SignIn: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "sign-in",
      abstract: "Print a user token for a container; with --device a refresh token too.",
      discussion: "The audit log notes that an administrator acted as the person."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Argument(help: "The name to sign in with.") var name: String
    @Option(help: "The container's identifier.") var containerId: String
    @Option(help: "What to call the device; it can be revoked by itself.") var device: String?
    @Flag(help: "Without --device: the token lives two weeks from its last use.") var keep = false

    private struct Body: Encodable {
      var userName: String
      var container: String
      var device: String?
      var isKept: Bool
    }

    private struct Reply: Codable {
      var webAuthToken: String
      var refreshToken: String?
      var expires: Int64?
      var userRecordName: String?
    }

    func run() async throws {
      try await perform("\(name) was not signed in") {
        let body = Body(userName: name, container: containerId, device: device, isKept: keep)
        let reply: Reply = try await server.connect { try await $0.call("users/sign-in", body) }
        let lines = [reply.webAuthToken, reply.refreshToken].compactMap(\.self)
        try output.write(reply, text: lines.joined(separator: "\n"))
      }
    }
  }

  struct SignOut: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "sign-out",
      abstract: "End everything that a person is signed in with."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Argument(help: "The name to sign in with.") var name: String

    func run() async throws {
      try await perform("\(name) was not signed out") {
        let _: NoReply = try await server.connect {
          try await $0.call("users/sign-out", ["userName": name])
        }
        output.remark("\(name) has to sign in again everywhere.")
      }
    }
  }

  struct Devices: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the devices that a person stays signed in with."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Argument(help: "The name to sign in with.") var name: String

    private struct Reply: Decodable { var devices: [CloudKitService.DeviceDescription] }

    func run() async throws {
      try await perform("the devices of \(name) cannot be listed") {
        let reply: Reply = try await server.connect {
          try await $0.call("users/devices", ["userName": name])
        }
        try output.write(
          "devices",
          reply.devices,
          columns: reply.devices.map { device in
            [device.id, device.device, device.container, Self.date(device.used)]
          },
          titles: ["id", "device", "container", "last used"]
        )
      }
    }

    private static func date(_ milliseconds: Int64) -> String {
      Date(timeIntervalSince1970: Double(milliseconds) / 1000).formatted(.iso8601)
    }
  }

  struct Revoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "revoke-device",
      abstract: "Sign one device out."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Argument(help: "The device's ID, as `users devices` lists it.") var id: String

    func run() async throws {
      try await perform("the device was not revoked") {
        let _: NoReply = try await server.connect {
          try await $0.call("users/revoke-device", ["id": id])
        }
        output.remark("The device has to sign in again.")
      }
    }
  }
}
