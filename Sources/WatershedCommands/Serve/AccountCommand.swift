import ArgumentParser
import CloudKitServer
import Foundation

/// `watershed account`: the people who may sign in.
struct AccountCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "account",
    abstract: "Add and list the people who may sign in to a server.",
    subcommands: [Add.self, List.self]
  )

  /// `watershed account add NAME`.
  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Add a person and print the password.",
      discussion: "The server must be stopped; it finds the account when it starts again."
    )

    @OptionGroup var data: DataFolderOptions

    @Argument(help: "The name to sign in with.")
    var name: String

    func run() async throws {
      let folder = try DataFolder(opening: data)
      defer { folder.close() }
      let service = try folder.openService()
      let password = PasswordMaker.password()
      let outcome: Result<String, any Error>
      do {
        outcome = .success(try await service.createAccount(userName: name, password: password))
      } catch {
        outcome = .failure(error)
      }
      await service.shutdown()
      _ = try outcome.get()
      print("Added \(name), password \(password) (shown this once).")
    }
  }

  /// `watershed account list`.
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the names of all people, one a line."
    )

    @OptionGroup var data: DataFolderOptions

    func run() async throws {
      let folder = try DataFolder(opening: data)
      defer { folder.close() }
      let service = try folder.openService()
      let names = Result { try service.userNames() }
      await service.shutdown()
      for name in try names.get().sorted() { print(name) }
    }
  }
}
