import ArgumentParser
import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit

/// `watershed exec`: a server around a command, for tests and CI.
struct ExecCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "exec",
    abstract: "Run a command with a server of its own, which ends with the command.",
    discussion: """
      watershed exec -- swift test

      The server listens on a free port of this machine and keeps its data in a temporary folder. The \
      command finds it in its environment: WATERSHED_CLOUDKIT_URL, _CONTAINER, _ENVIRONMENT, _API_TOKEN \
      and _WEB_AUTH_TOKEN are what CKContainer reads, with an account signed in; \
      WATERSHED_CLOUDKIT_USER_NAME and _PASSWORD are that account's; WATERSHED_SERVER and \
      WATERSHED_ADMIN_TOKEN are what the watershed commands read.

      The exit code is the command's. A signal that ends the command ends this program too; signals \
      to this program reach the command. 127: there is no such command; 126: it cannot be run.
      """
  )

  @Option(help: "The container's identifier.")
  var containerId = "iCloud.org.example.app"

  @Option(help: "A schema file (.ckdb) to import before the command runs.")
  var schema: String?

  @Option(help: "The name of the account that is signed in.")
  var user = "demo"

  @Flag(help: "Answer queries that CloudKit's index rules refuse.")
  var allowUnindexedQueries = false

  @Argument(
    parsing: .postTerminator,
    help: ArgumentHelp("The command with its arguments, after --.", valueName: "command")
  )
  var command: [String] = []

  func validate() throws {
    guard !command.isEmpty, command[0] != "" else {
      throw ValidationError("Name the command after --, such as: watershed exec -- swift test")
    }
    guard NameRules.isIdentifier(containerId) else {
      throw ValidationError("\(containerId): \(NameRules.identifierRule)")
    }
  }

  func run() async throws {
    let child = ChildProcess()
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-exec-\(UUID().uuidString)")
    let end: ChildProcess.End
    do {
      end = try await run(child, in: folder)
    } catch {
      remove(folder)
      let failure = failure(error)
      StandardError.write(failure.text)
      throw ExitCode(failure.exitCode)
    }
    remove(folder)
    ChildProcess.end(like: end)
  }

  private func run(_ child: ChildProcess, in folder: URL) async throws -> ChildProcess.End {
    let text = try schema.map(InputFile.text)
    // Not those above it: a misspelt TMPDIR would be created, and left.
    try FileManager.default.createDirectory(
      at: folder,
      withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o700]
    )
    let token = AdminTokenFile.newToken()
    let server = try await EmbeddedServer.start(.init(dataFolder: folder)) {
      $0.administratorToken = token
      // The hash of a password that ends with the command needs to cost an attacker nothing.
      $0.limits.passwordRounds = 1
      $0.allowsUnindexedQueriesInDevelopment = allowUnindexedQueries
    }
    let outcome: Result<ChildProcess.End, any Error>
    do {
      let given = try await environment(server, token: token, schema: text)
      outcome = .success(try await child.run(command, environment: given))
    } catch {
      outcome = .failure(error)
    }
    await server.stop()
    return try outcome.get()
  }

  /// This process's environment with the server's values, and without others of another server.
  private func environment(
    _ server: EmbeddedServer,
    token: String,
    schema: String?
  ) async throws -> [String: String] {
    typealias Variable = ConfigurationLoader.Variable
    let service = server.service
    let apiToken = try await service.apiTokens.token(
      opening: containerId,
      environment: .development
    )
    if let schema { try await service.schemas.importSchema(schema, container: containerId) }
    let password = PasswordMaker.password()
    try await service.createAccount(userName: user, password: password)
    let webAuthToken = try await service.signIn(userName: user, container: containerId)
    var variables = ProcessInfo.processInfo.environment.filter { name, _ in
      !name.hasPrefix("WATERSHED_CLOUDKIT_") && !ServerConfiguration.variables.contains(name)
        && name != "WATERSHED_CONFIG"
    }
    variables[Variable.url] = server.url.absoluteString
    variables[Variable.container] = containerId
    variables[Variable.environment] = ContainerEnvironment.development.rawValue
    variables[Variable.apiToken] = apiToken
    variables[Variable.webAuthToken] = webAuthToken
    variables["WATERSHED_CLOUDKIT_USER_NAME"] = user
    variables["WATERSHED_CLOUDKIT_PASSWORD"] = password
    variables["WATERSHED_SERVER"] = server.url.absoluteString
    variables["WATERSHED_ADMIN_TOKEN"] = token
    return variables
  }

  private func failure(_ error: any Error) -> CommandFailure {
    let what = "\(command[0]) was not run"
    guard let error = error as? ChildProcess.StartFailure else {
      return CommandFailure(error, doing: what)
    }
    return CommandFailure(
      "COMMAND_NOT_RUN",
      what: what,
      why: error.reason,
      next: "name a program that is in PATH, or its whole path",
      exit: error.exitCode
    )
  }

  private func remove(_ folder: URL) {
    // SQLite removes its own files when the last connection closes; if that happens meanwhile, the
    // removal ends half way at a file that is no longer there, and has to be repeated.
    var failure: (any Error)?
    for _ in 0..<5 {
      do {
        try FileManager.default.removeItem(at: folder)
        return
      } catch {
        guard FileManager.default.fileExists(atPath: folder.path) else { return }
        failure = error
      }
    }
    let reason = failure?.localizedDescription ?? "no reason is known"
    StandardError.print("The folder \(folder.path) was not removed: \(reason)")
  }
}
