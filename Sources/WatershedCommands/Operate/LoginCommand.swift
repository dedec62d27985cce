import ArgumentParser
import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation

/// `watershed login`: signs in as an administrator of a remote server.
struct LoginCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "login",
    abstract:
      "Sign in as an administrator, locally or remotely, and save the token for later commands.",
    discussion: """
      watershed login ada --server https://cloud.example.org

      The token is saved where `watershed tokens save` saves it, and is sent to this server only; \
      `watershed tokens forget --type management` deletes it.
      """
  )

  @OptionGroup var server: ServerOptions
  @OptionGroup var output: OutputOptions
  @Argument(help: "The administrator's name.") var name: String
  @Flag(help: "Read the password from the standard input.") var passwordStdin = false

  @Option(help: "A code of the second factor, where the account has one.") var code: String?

  private struct Body: Encodable {
    var userName: String
    var password: String
    var code: String?
  }

  private func signIn(_ password: String) async throws -> (session: AdminSession, server: URL?) {
    do {
      return try await server.connect { connection in
        let session: AdminSession = try await connection.call(
          .session(.start),
          Body(userName: name, password: password, code: code)
        )
        return (session, connection.server)
      }
    } catch let error as ErrorDictionary where error.serverErrorCode == .authenticationFailed {
      var failure = CommandFailure(error, doing: "\(name) was not signed in")
      failure.next = "check the name and the password; --code takes a code of the second factor"
      throw failure
    }
  }

  func run() async throws {
    try await perform("\(name) was not signed in") {
      guard let password = try PasswordPrompt.read(fromInput: passwordStdin), !password.isEmpty
      else { throw ValidationError("There is no password to sign in with.") }
      let (session, place) = try await signIn(password)
      var saved = SavedTokens.read()
      saved.set(.management, session.token, for: place)
      try saved.write()
      try output.done(
        "Signed in; commands with --server and this server use the token from now on.",
        ["userName": name]
      )
    }
  }
}
