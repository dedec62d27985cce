import ArgumentParser

/// `watershed model`: commands for Core Data models.
struct ModelCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model",
    abstract: "Inspect and compile Core Data models, and generate their classes.",
    subcommands: [
      ModelCompileCommand.self, ModelGenerateCommand.self, ModelRecordsCommand.self,
    ]
  )
}
