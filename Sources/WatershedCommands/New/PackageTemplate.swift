/// The files of a package that `watershed new` writes.
protocol PackageTemplate {
  var files: [PackageTemplateFile] { get }
}

/// A file of a new package.
struct PackageTemplateFile {
  /// Within the package's folder.
  var path: String
  var text: String
}
