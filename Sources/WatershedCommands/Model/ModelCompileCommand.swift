import ArgumentParser
import Effects
import Foundation
import OpenCoreData

/// `watershed model compile`: compiles a model as Xcode's `momc` does.
struct ModelCompileCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compile",
    abstract: "Compile a model to a .momd or a .mom.",
    discussion: """
      The build plugin CoreDataModels does the same at build time. Source, destination and options are \
      those of Xcode's momc, so that a script named momc with the line \
      exec watershed model compile "$@" stands in for it. An .xcdatamodeld becomes a .momd with every \
      version, an .xcdatamodel a .mom.
      """
  )

  @Argument(help: "An .xcdatamodeld or an .xcdatamodel.")
  var source: String

  @Argument(help: "A .momd, a .mom, or an existing folder for it.")
  var destination: String

  @OptionGroup(title: "Options of momc that change nothing here")
  var ignored: IgnoredCompilerOptions

  func run() throws {
    let model = URL(fileURLWithPath: source)
    do {
      let isVersioned = try ModelFile.isVersioned(model)
      let output = try Self.output(of: model, isVersioned: isVersioned, at: destination)
      if isVersioned {
        try ModelCompiler.compile(model, into: output)
      } else {
        try ModelArchive.archive(of: ModelFile.load(contentsOf: model)).write(to: output)
      }
    } catch {
      let failure = Self.failure(of: error, at: destination)
      StandardError.write(failure.text)
      throw ExitCode(failure.exitCode)
    }
  }

  /// Where the compiled model is written; never over anything but a compiled model.
  private static func output(of model: URL, isVersioned: Bool, at destination: String) throws -> URL
  {
    let pathExtension = isVersioned ? "momd" : "mom"
    var output = URL(fileURLWithPath: destination)
    if output.pathExtension != pathExtension {
      guard try FileSystem.look(at: output.path) == .folder else {
        throw unsuitable(
          "\(destination) is neither a .\(pathExtension) nor an existing folder"
        )
      }
      let name = model.deletingPathExtension().lastPathComponent
      output.appendPathComponent("\(name).\(pathExtension)")
    }
    switch try FileSystem.look(at: output.path) {
    case .missing: break
    case .folder:
      let entries = try FileSystem.names(in: output.path)
      guard isVersioned, entries.allSatisfy(isCompiled) else {
        throw unsuitable("\(output.path) is a folder with other files than a compiled model's")
      }
    default:
      guard !isVersioned else { throw unsuitable("\(output.path) is a file") }
    }
    return output
  }

  private static func isCompiled(_ name: String) -> Bool {
    name == "VersionInfo.plist" || name.hasSuffix(".mom") || name.hasSuffix(".omo")
  }

  private static func unsuitable(_ why: String) -> CommandFailure {
    CommandFailure(
      "UNWRITABLE_FILE",
      what: "the model is not compiled",
      why: why,
      next: "name a .momd for an .xcdatamodeld, a .mom for an .xcdatamodel, or an existing folder"
    )
  }

  private static func failure(of error: any Error, at destination: String) -> CommandFailure {
    switch error {
    case let failure as CommandFailure: failure
    case is ModelFileError: CommandFailure(unreadableModel: error)
    default: unsuitable("\(destination): \((error as NSError).localizedDescription)")
    }
  }
}

/// What `momc` takes about platforms and warnings, which compiled models do not depend on.
struct IgnoredCompilerOptions: ParsableArguments {
  @Option(help: .hidden) var sdkroot: String?
  @Option(help: .hidden) var module: String?
  @Option(name: .customLong("macosx-deployment-target"), help: .hidden) var macOS: String?
  @Option(name: .customLong("iphoneos-deployment-target"), help: .hidden) var iOS: String?
  @Option(name: .customLong("appletvos-deployment-target"), help: .hidden) var tvOS: String?
  @Option(name: .customLong("watchos-deployment-target"), help: .hidden) var watchOS: String?
  @Flag(help: .hidden) var noWarnings = false
  @Flag(help: .hidden) var noInverseRelationshipWarnings = false
  @Flag(help: .hidden) var noMaxPropertyCountWarnings = false
  @Flag(help: .hidden) var noDeleteRuleWarnings = false
}
