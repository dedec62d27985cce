import ArgumentParser

/// `watershed model`: what a Core Data model is, and becomes.
struct ModelCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model",
    abstract: "Look into Core Data models, and write their classes.",
    subcommands: [ModelGenerateCommand.self, ModelRecordsCommand.self]
  )
}
