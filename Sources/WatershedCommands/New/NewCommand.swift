import ArgumentParser
import CloudKitServer
import Effects
import Foundation

/// `watershed new NAME`: what an app or a service begins with.
struct NewCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "new",
    abstract: "Write the beginning of an app: a Swift package, a service, or a web page.",
    discussion: """
      The folder NAME is created here, with a README that explains how to run it against a server.

      app: a Swift package with a model, generated classes, a mirrored store, and a test that syncs two \
      devices through a service in the process. It depends on the checkout that this program was built in, \
      or on what --watershed names.

      server: a Swift package of a service: the same kind of model, a store, and routes over HTTP by \
      Hummingbird, with a test.

      web: a page over CloudKit's web services, with a schema and a test in Node under `watershed exec`.
      """
  )

  @Argument(help: "The package's name, such as Notes: letters and digits, the first in upper case.")
  var name: String

  /// The kind of package that is written.
  enum Kind: String, CaseIterable, ExpressibleByArgument {
    case app, server, web
  }

  @Option(help: "What to write: app, server or web.")
  var kind = Kind.app

  @Option(
    help: ArgumentHelp(
      "Where Watershed is: the folder of a checkout, or a repository's address.",
      valueName: "location"
    )
  )
  var watershed: String?

  /// Modules that a package's own would hide, and targets of the package graph, whose names are used once.
  ///
  /// A package `Watershed` would have the identity of its dependency.
  private static let takenNames: Set<String> = [
    "Algorithms", "AppleShims", "ArgumentParser", "AsyncAlgorithms", "AsyncHTTPClient", "Atomics",
    "CloudKit", "CloudKitMirroring", "CloudKitServer", "CloudKitServerHTTP", "CloudKitTesting",
    "CloudKitWebServices", "Collections", "Configuration", "CoreData", "CoreDataModels",
    "CoreMetrics",
    "Crypto", "CryptoExtras", "Dispatch", "Effects", "Foundation", "FoundationEssentials",
    "FoundationNetworking", "FoundationXML", "Glibc", "HTTPTypes", "Hummingbird", "HummingbirdCore",
    "HummingbirdTesting", "HummingbirdTLS", "Instrumentation", "Item", "JWTKit", "Logging",
    "ManagedMacroPlugin", "ManagedMacros", "Metrics", "ModelGenerator", "NIO", "NIOCore",
    "NIOFoundationCompat", "NIOPosix", "NIOSSL", "Numerics", "Observation", "OpenCloudKit",
    "OpenCoreData", "OrderedCollections", "ServiceContextModule", "ServiceLifecycle", "Simulation",
    "Swift", "SwiftASN1", "SwiftParser", "SwiftSyntax", "Synchronization", "SystemPackage",
    "Testing",
    "Tracing", "UnixSignals", "Watershed", "WatershedCommands", "WatershedPostgreSQL",
    "WatershedSQLite",
    "X509", "XCTest",
  ]

  func validate() throws {
    guard name.wholeMatch(of: /[A-Z][A-Za-z0-9]*/) != nil else {
      throw ValidationError(
        "\(name) cannot be a module's name; take letters and digits, an upper-case letter first."
      )
    }
    guard !Self.takenNames.contains(name) else {
      throw ValidationError(
        "\(name) is the name of a package, module or class that the package uses; choose another."
      )
    }
    guard kind != .web || watershed == nil else {
      throw ValidationError(
        "--watershed is for packages; a web page does not depend on a checkout."
      )
    }
  }

  func run() throws {
    let template: any PackageTemplate =
      switch kind {
      case .app: AppTemplate(name: name, library: try library())
      case .server: ServerTemplate(name: name, library: try library())
      case .web: WebTemplate(name: name)
      }
    let folder = URL(fileURLWithPath: name, isDirectory: true)
    let manager = FileManager.default
    guard !manager.fileExists(atPath: folder.path) else {
      let failure = CommandFailure(
        "UNWRITABLE_FILE",
        what: "\(name) was not written",
        why: "a file or folder exists at \(folder.path) already",
        next: "choose another name, or remove it",
        exit: ExitCodes.usage
      )
      StandardError.write(failure.text)
      throw ExitCode(failure.exitCode)
    }
    try attempt("\(name) was not written") {
      for file in template.files { try write(file, in: folder) }
    }
    try StandardOutput.print("Wrote \(Count.of(template.files.count, "file")) to \(folder.path).")
    try StandardOutput.print("Next: cd \(name) && \(kind == .web ? Self.npmTest : "swift test")")
  }

  /// The test of a web page runs this program, which a checkout's is no command of the shell.
  private static var npmTest: String {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    let isCommand = folders.contains {
      FileManager.default.isExecutableFile(atPath: "\($0)/watershed")
    }
    guard !isCommand, let program = Bundle.main.executableURL?.path else { return "npm test" }
    return "WATERSHED=\(ServeBanner.quoted(program)) npm test"
  }

  private func write(_ file: PackageTemplateFile, in folder: URL) throws {
    let url = folder.appendingPathComponent(file.path)
    do {
      try FileManager.default.createDirectory(
        at: url.deletingLastPathComponent(),
        withIntermediateDirectories: true
      )
      try Data(file.text.utf8).write(to: url)
    } catch {
      throw CommandFailure(
        "UNWRITABLE_FILE",
        what: "\(name) was not written",
        why: "\(url.path): \(error.systemReason)",
        next: "run the command in a folder that can be written"
      )
    }
  }

  private func library() throws -> LibraryLocation {
    if let watershed {
      let version = WatershedCommand.configuration.version
      if let location = LibraryLocation(watershed, version: version) { return location }
      throw ValidationError("\(watershed) is neither an address nor a checkout of Watershed.")
    }
    if let program = Bundle.main.executableURL,
      let location = LibraryLocation.checkout(of: program)
    {
      return location
    }
    throw ValidationError(
      "This program is in no checkout of Watershed; name one, or a repository, with --watershed."
    )
  }
}
