/// A Swift package with a model: an app or a service.
protocol SwiftPackageTemplate: PackageTemplate {
  var name: String { get }
}

extension SwiftPackageTemplate {
  /// The contents of `.gitignore`.
  var ignored: String {
    #"""
    .build/
    *.sqlite*

    """#
  }

  /// The contents of the model's `.xccurrentversion`.
  var currentVersion: String {
    #"""
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">
    <dict>
    	<key>_XCCurrentVersionName</key>
    	<string>\#(name).xcdatamodel</string>
    </dict>
    </plist>

    """#
  }
}
