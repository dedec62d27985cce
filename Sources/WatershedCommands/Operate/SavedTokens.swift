import ArgumentParser
import CloudKitWebServices
import Foundation

/// Tokens that a user saves for later commands, in a file that only they can read.
struct SavedTokens: Codable, Hashable {
  /// `cktool`'s two kinds.
  enum Kind: String, CaseIterable, ExpressibleByArgument {
    /// For the admin API of a remote server.
    case management
    /// For a user's databases.
    case user
  }

  private var management: String?
  private var user: String?
  /// The origins of the servers that the tokens are for; nil: any server.
  private var managementServer: String?
  private var userServer: String?

  func has(_ kind: Kind) -> Bool {
    switch kind {
    case .management: management != nil
    case .user: user != nil
    }
  }

  /// The token of a kind for a server; nil if none is saved, or one for another server.
  func token(_ kind: Kind, for server: URL?) -> String? {
    let (token, origin) =
      switch kind {
      case .management: (management, managementServer)
      case .user: (user, userServer)
      }
    // A token of an earlier version has no server.
    guard let origin else { return token }
    guard let server, let own = URL(string: origin), Self.isOne(own, server) else { return nil }
    return token
  }

  mutating func set(_ kind: Kind, _ token: String?, for server: URL?) {
    let origin = token == nil ? nil : server.map(Self.origin)
    switch kind {
    case .management: (management, managementServer) = (token, origin)
    case .user: (user, userServer) = (token, origin)
    }
  }

  /// Whether two addresses are of one server; a port of this machine is one by each of the machine's names.
  static func isOne(_ server: URL, _ other: URL) -> Bool {
    if origin(of: server) == origin(of: other) { return true }
    func port(_ url: URL) -> Int { url.port ?? (url.scheme?.lowercased() == "https" ? 443 : 80) }
    return server.scheme?.lowercased() == other.scheme?.lowercased()
      && LoopbackHost.contains(server.host) && LoopbackHost.contains(other.host)
      && port(server) == port(other)
  }

  /// A server's scheme, host and port, without a port that the scheme implies.
  private static func origin(of server: URL) -> String {
    let scheme = server.scheme?.lowercased() ?? ""
    let host = server.host?.lowercased() ?? ""
    let implied = ["http": 80, "https": 443][scheme]
    let port = server.port.flatMap { $0 == implied ? nil : ":\($0)" } ?? ""
    return "\(scheme)://\(host.contains(":") ? "[\(host)]" : host)\(port)"
  }

  private static var file: URL {
    let environment = ProcessInfo.processInfo.environment
    let folder =
      environment["XDG_CONFIG_HOME"].flatMap { $0.isEmpty ? nil : URL(fileURLWithPath: $0) }
      ?? (environment["HOME"].flatMap { $0.isEmpty ? nil : URL(fileURLWithPath: $0) }
      ?? FileManager.default.homeDirectoryForCurrentUser).appendingPathComponent(".config")
    return folder.appendingPathComponent("watershed/tokens.json")
  }

  /// The saved tokens; empty if there is no file, or none that can be read.
  static func read() -> SavedTokens {
    (try? JSONDecoder().decode(SavedTokens.self, from: Data(contentsOf: file))) ?? SavedTokens()
  }

  func write() throws {
    let file = Self.file
    let manager = FileManager.default
    do {
      try manager.createDirectory(
        at: file.deletingLastPathComponent(),
        withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700]
      )
    } catch {
      throw Self.unwritable(file)
    }
    // Created again: an existing file would keep its permissions.
    try? manager.removeItem(at: file)
    guard
      manager.createFile(
        atPath: file.path,
        contents: try JSONEncoder().encode(self),
        attributes: [.posixPermissions: 0o600]
      )
    else { throw Self.unwritable(file) }
  }

  private static func unwritable(_ file: URL) -> CommandFailure {
    CommandFailure(
      "UNWRITABLE_FILE",
      what: "the token was not saved",
      why: "\(file.path) cannot be written",
      next: "name another folder with XDG_CONFIG_HOME, or give --token with each command"
    )
  }
}

/// Where `cktool` stores a token; on Linux there is a file, and no keychain.
private enum TokenMethod: String, CaseIterable, ExpressibleByArgument {
  case file, keychain
}

extension TokensCommand {
  struct Save: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Save a token for later commands; read from the standard input if none is given.",
      discussion: """
        A management token is used with --server, a user token for the databases of a user. A \
        token of the command line or of the environment takes precedence.

        A token that is saved with --server, as `watershed login` does, is sent to that server only; \
        without it, to any server that a command names.
        """,
      aliases: ["save-token"]
    )

    @OptionGroup var output: OutputOptions
    @Argument(help: "The token; without it the first line of the standard input.")
    var value: String?
    @Option(help: "management or user.") var type = SavedTokens.Kind.management
    @Option(help: "The only server that the token is sent to; also WATERSHED_SERVER.")
    var server: String?
    @Option(help: "file; there is no keychain.") private var method = TokenMethod.file
    @Flag(help: "Replace a saved one.") var force = false

    func validate() throws {
      guard method == .file else {
        throw ValidationError("There is no keychain here; leave --method out, or say file.")
      }
    }

    func run() async throws {
      try await perform("the token was not saved") {
        var saved = SavedTokens.read()
        guard !saved.has(type) || force else {
          throw CommandFailure(
            "TOKEN_EXISTS",
            what: "the token was not saved",
            why: "there is a \(type.rawValue) token saved already",
            next: "add --force to replace it",
            exit: ExitCodes.usage
          )
        }
        let token = (value ?? readLine() ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
        guard !token.isEmpty else { throw ValidationError("There is no token to save.") }
        saved.set(type, token, for: try ServerOptions.remote(server))
        try saved.write()
        try output.done("Kept.", ["type": type.rawValue])
      }
    }
  }

  struct Forget: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Delete a saved token from this machine; it stays valid on the server.",
      aliases: ["remove-token"]
    )

    @OptionGroup var output: OutputOptions
    @Option(help: "management or user.") var type: SavedTokens.Kind
    @Option(help: "file; there is no keychain.") private var method = TokenMethod.file
    @Flag(help: "Succeed also if none is saved.") var force = false

    func run() async throws {
      try await perform("the token was not deleted") {
        var saved = SavedTokens.read()
        guard saved.has(type) else {
          guard force else {
            throw CommandFailure(
              "NO_TOKEN",
              what: "nothing was deleted",
              why: "no \(type.rawValue) token is saved",
              next: "watershed tokens save --type \(type.rawValue)"
            )
          }
          return try output.done("None was saved.", ["type": type.rawValue])
        }
        saved.set(type, nil, for: nil)
        try saved.write()
        try output.done("Forgotten.", ["type": type.rawValue])
      }
    }
  }
}
