import Foundation

/// The class names to try for an entity's objects.
///
/// `NSClassFromString` wants "Module.Class" on Linux, while models mostly name the class alone or
/// say ".Class" for "the module that is being built". The modules of an app are not listed
/// anywhere, but SwiftPM leaves a `<Package>_<Target>.resources` folder for each that has resources. A
/// class of another module is found by its own name, if no other class of managed objects has it.
package enum ManagedObjectClassResolver {
  /// The candidates for the name of an entity's class, in the order in which they are tried.
  package static func candidates(for entity: NSEntityDescription) -> [String] {
    guard let raw = entity.rawClassName, !raw.isEmpty, raw != "NSManagedObject" else { return [] }
    return candidates(
      className: entity.objectClassName,
      near: entity.modelReference?.sourceURL
    )
  }

  /// The class of an entity's objects; nil where the program has no such class.
  static func type(for entity: NSEntityDescription) -> NSManagedObject.Type? {
    let names = candidates(for: entity)
    for name in names {
      if let found = ManagedClassNames.type(named: name) { return found }
    }
    let name = entity.objectClassName
    return names.isEmpty || name.contains(".") ? nil : ManagedClassNames.type(ownName: name)
  }

  /// The name of the class that the entity's objects have, or what the model says where the program
  /// has no such class.
  static func className(for entity: NSEntityDescription) -> String {
    type(for: entity).map(ManagedClassNames.name) ?? entity.objectClassName
  }

  /// The names to try for a class that the app's files name.
  package static func candidates(className name: String, near modelURL: URL?) -> [String] {
    var candidates: [String] = []
    func add(_ candidate: String) {
      if !candidates.contains(candidate) { candidates.append(candidate) }
    }
    let isPlain = !name.contains(".")
    if !isPlain { add(name) }
    // A class named for another module is still looked up in the app's: targets get renamed.
    let last = name.split(separator: ".").last.map(String.init) ?? name
    for module in modules(near: modelURL) { add("\(module).\(last)") }
    if isPlain { add(name) }
    return candidates
  }

  /// The modules that could hold the app's classes: the model's own target first, then the
  /// executable, then every target with resources.
  static func modules(near modelURL: URL?) -> [String] {
    var modules: [String] = []
    func add(_ text: String) {
      let name = moduleName(text)
      if !name.isEmpty, !modules.contains(name) { modules.append(name) }
    }
    if let modelURL {
      for component in modelURL.pathComponents.reversed() {
        if let target = target(ofResourceFolder: component) { add(target) }
      }
    }
    for module in processModules { add(module) }
    return modules
  }

  /// The modules that do not change while the process runs.
  private static let processModules: [String] = {
    var modules: [String] = []
    if let executable = Bundle.main.executableURL {
      modules.append(executable.deletingPathExtension().lastPathComponent)
    }
    for folder in ModelLocator.resourceFolders() {
      if let target = target(ofResourceFolder: folder.lastPathComponent) { modules.append(target) }
    }
    return modules
  }()

  private static func target(ofResourceFolder name: String) -> String? {
    guard name.hasSuffix(".resources") else { return nil }
    var stem = name.dropLast(".resources".count)
    guard let underscore = stem.firstIndex(of: "_") else { return nil }
    // A package with a macro or a build plugin has targets built for the machine that builds.
    if stem.hasSuffix("-tool") { stem = stem.dropLast("-tool".count) }
    return String(stem[stem.index(after: underscore)...])
  }

  /// Swift's spelling of a target's name as a module.
  private static func moduleName(_ text: String) -> String {
    String(text.map { $0.isLetter || $0.isNumber || $0 == "_" ? $0 : "_" })
  }
}
