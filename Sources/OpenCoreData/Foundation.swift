// Code that says `import CoreData` expects Foundation with it, as Apple's module brings it.
@_exported import Foundation

#if Macros
@_exported import ManagedMacros
#endif
