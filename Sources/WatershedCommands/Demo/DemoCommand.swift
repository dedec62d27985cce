import ArgumentParser
import Effects
import Foundation

/// `watershed demo`: two devices that sync through a server, with a timeline.
struct DemoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Save objects on one device and watch them appear on the other.",
    discussion: """
      Starts a CloudKit server on a loopback port, signs one person in on two devices, and mirrors \
      objects from each to the other. Ends with an object-by-object comparison of the two stores.
      """
  )

  @Option(help: "Mirror a sample of this .xcdatamodeld or .xcdatamodel, not the built-in posts.")
  var model: String?

  @Flag(help: "With --model: save, reopen and compare without a cloud.")
  var local = false

  @Option(help: "Other data for each number.")
  var seed: UInt64 = 1

  @Flag(help: "Leave the server running and the stores in place, for inspection.")
  var keep = false

  @Flag(help: "Wait for a line on the standard input before each chapter.")
  var step = false

  @Flag(help: "Print each event as a JSON object on a line.")
  var json = false

  @OptionGroup var color: ColorOptions

  func validate() throws {
    if local, model == nil { throw ValidationError("--local needs a model: --model PATH.") }
  }

  func run() async throws {
    let effects = Effects.live
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-demo-\(effects.uuid().uuidString.prefix(8))")
    let reporter = DemoReporter(
      isJSON: json,
      isColored: color.isColored(),
      waitsBeforeChapters: step
    ) {
      effects.clock.uptime
    } onFailure: { error in
      cleanUp(folder)
      Program.end(error)
    }
    let interruption = Interruption {
      cleanUp(folder)
      Interruption.end("the demo did not end", next: "watershed demo")
    }
    defer { interruption.stop() }
    do {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      try await play(in: folder, reporter)
      cleanUp(folder)
    } catch let failure as DemoFailure {
      cleanUp(folder)
      reporter.report("demo", "failed", failure.description)
      throw ExitCode(failure.exitCode)
    } catch {
      cleanUp(folder)
      reporter.report("demo", "failed", "\(error)")
      throw ExitCode.failure
    }
  }

  /// Removes the folder.
  ///
  /// After Ctrl-C devices and server still use it. It is renamed first, so that files that they
  /// create or remove by path are no longer in it; a folder that one of them creates again in
  /// between is removed the same way.
  private func cleanUp(_ folder: URL) {
    guard !keep else { return }
    let aside = folder.appendingPathExtension("done")
    for _ in 0..<3 where FileManager.default.fileExists(atPath: folder.path) {
      try? FileManager.default.moveItem(at: folder, to: aside)
      try? FileManager.default.removeItem(at: aside)
    }
  }

  private func play(in folder: URL, _ reporter: DemoReporter) async throws {
    reporter.report("demo", "begins", "Watershed demo, seed \(seed)")
    let chosen = try model.map(DemoModel.load) ?? DemoModel.posts()
    if !chosen.standInTransformers.isEmpty {
      reporter.report(
        "demo",
        "note",
        "The model names value transformers that only its app has; archived values replace "
          + chosen.standInTransformers.joined(separator: ", ")
      )
    }
    if local {
      try LocalDemo(model: chosen, seed: seed, folder: folder, reporter: reporter).run()
      if keep { reporter.report("demo", "kept", "the store in \(folder.path)") }
      return
    }
    let violations = ModelDemo.violations(of: chosen.model)
    guard violations.isEmpty else {
      reporter.report(
        "demo",
        "refused",
        "CloudKit cannot take this model. \(violations.count) rules are broken:",
        count: violations.count,
        lines: violations.flatMap { $0.components(separatedBy: "\n") }
      )
      throw DemoFailure("Mirror another model, or try this one with --local.", exitCode: 2)
    }
    let world = try await DemoWorld(model: chosen, folder: folder, reporter: reporter)
    do {
      if model == nil {
        try await PostsDemo(world: world, seed: seed).run()
      } else {
        try await ModelDemo(world: world, model: chosen, seed: seed).run()
      }
      try await world.compare()
    } catch {
      await world.stop()
      throw error
    }
    let token = keep ? try await world.server.signIn().webAuthToken : nil
    await world.stop()
    if let token { try DemoRemains(world: world, folder: folder).leave(webAuthToken: token) }
  }
}
