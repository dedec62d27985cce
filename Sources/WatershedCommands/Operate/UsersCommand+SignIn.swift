import ArgumentParser
import CloudKitServer
import Foundation

/// Commands for sign-ins, sessions and devices.
extension UsersCommand {
  struct ResetPassword: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "reset-password",
      abstract: "Print a link with which the user chooses a new password, once within an hour."
    )

    @OptionGroup var person: PersonOptions

    func run() async throws {
      try await perform("no link was created for \(person.name)") {
        let reply: [String: String] = try await person.server.connect {
          try await $0.call(.users(.resetPassword), ["userName": person.name])
        }
        try person.output.write(reply, text: reply["url"] ?? "")
      }
    }
  }

  struct RemoveFactor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "remove-factor",
      abstract: "Remove a user's second factor; the password alone then signs in.",
      discussion:
        "For users who lost the authenticator app and the recovery codes. The audit log records it."
    )

    @OptionGroup var person: PersonOptions
    @OptionGroup var consent: ConsentOptions

    func run() async throws {
      try await perform("the second factor of \(person.name) was not removed") {
        let deed = "allow \(person.name) to sign in with the password alone"
        guard try consent.isGiven(to: deed, person.output) else { return }
        let _: NoReply = try await person.server.connect {
          try await $0.call(.users(.removeFactor), ["userName": person.name])
        }
        try person.output.done(
          "\(person.name) signs in with the password alone.",
          ["userName": person.name]
        )
      }
    }
  }

  struct Invite: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Create an invitation: a link that registers one account within a week."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Flag(help: "The account may use the admin API.") var administrator = false

    func run() async throws {
      try await perform("no invitation was created") {
        let reply: [String: String] = try await server.connect {
          try await $0.call(.invitations(.create), ["isAdministrator": administrator])
        }
        try output.write(reply, text: reply["url"] ?? "")
      }
    }
  }

  struct SignIn: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "sign-in",
      abstract: "Print a user token for a container; with --device a refresh token too.",
      discussion: "The audit log records that an administrator acted as the user."
    )

    @OptionGroup var person: PersonOptions
    @Option(help: "The container's identifier.") var containerId: String
    @Option(help: "A name for the device; it can be revoked by itself.") var device: String?
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
      try await perform("\(person.name) was not signed in") {
        let body = Body(userName: person.name, container: containerId, device: device, isKept: keep)
        let reply: Reply = try await person.server.connect {
          // The first sign-in would create it.
          try await $0.requireContainer(containerId)
          return try await $0.call(.users(.signIn), body)
        }
        let lines = [reply.webAuthToken, reply.refreshToken].compactMap(\.self)
        try person.output.write(reply, text: lines.joined(separator: "\n"))
      }
    }
  }

  struct SignOut: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "sign-out",
      abstract: "End all sign-ins of a user."
    )

    @OptionGroup var person: PersonOptions

    func run() async throws {
      try await perform("\(person.name) was not signed out") {
        let _: NoReply = try await person.server.connect {
          try await $0.call(.users(.signOut), ["userName": person.name])
        }
        try person.output.done(
          "\(person.name) has to sign in again on every device.",
          ["userName": person.name]
        )
      }
    }
  }

  struct Devices: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the devices that a user is signed in on."
    )

    @OptionGroup var person: PersonOptions

    private struct Reply: Decodable { var devices: [DeviceDescription] }

    func run() async throws {
      try await perform("the devices of \(person.name) cannot be listed") {
        let reply: Reply = try await person.server.connect {
          try await $0.call(.users(.devices), ["userName": person.name])
        }
        try person.output.write(
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
          try await $0.call(.users(.revokeDevice), ["id": id])
        }
        try output.done("The device has to sign in again.", ["id": id])
      }
    }
  }
}
