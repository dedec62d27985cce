/// The model of `Examples/Posts.xcdatamodeld`, so that the demo needs no file besides the program.
enum PostsModel {
  // As Xcode writes it, with long lines.
  // swift-format-ignore
  static let contents = """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522" systemVersion="23C71" minimumToolsVersion="Automatic" sourceLanguage="Swift" usedWithCloudKit="YES" userDefinedModelVersionIdentifier="">
        <entity name="Attachment" representedClassName="Attachment" syncable="YES" codeGenerationType="class">
            <attribute name="thumbnail" optional="YES" attributeType="Binary"/>
            <attribute name="uuid" optional="YES" attributeType="UUID" usesScalarValueType="NO"/>
            <relationship name="imageData" optional="YES" maxCount="1" deletionRule="Cascade" destinationEntity="ImageData" inverseName="attachment" inverseEntity="ImageData"/>
            <relationship name="post" optional="YES" maxCount="1" deletionRule="Nullify" destinationEntity="Post" inverseName="attachments" inverseEntity="Post"/>
        </entity>
        <entity name="ImageData" representedClassName="ImageData" syncable="YES" codeGenerationType="class">
            <attribute name="data" optional="YES" attributeType="Binary"/>
            <relationship name="attachment" optional="YES" maxCount="1" deletionRule="Nullify" destinationEntity="Attachment" inverseName="imageData" inverseEntity="Attachment"/>
        </entity>
        <entity name="ImagePost" representedClassName="ImagePost" parentEntity="Post" syncable="YES" codeGenerationType="class">
            <attribute name="imageData" optional="YES" attributeType="Binary"/>
        </entity>
        <entity name="Post" representedClassName="Post" syncable="YES" codeGenerationType="class">
            <attribute name="content" optional="YES" attributeType="String"/>
            <attribute name="title" optional="YES" attributeType="String"/>
            <relationship name="attachments" optional="YES" toMany="YES" deletionRule="Cascade" destinationEntity="Attachment" inverseName="post" inverseEntity="Attachment"/>
            <relationship name="tags" optional="YES" toMany="YES" deletionRule="Nullify" destinationEntity="Tag" inverseName="posts" inverseEntity="Tag"/>
        </entity>
        <entity name="Tag" representedClassName="Tag" syncable="YES" codeGenerationType="class">
            <attribute name="color" optional="YES" attributeType="Transformable" valueTransformerName="NSSecureUnarchiveFromData"/>
            <attribute name="name" optional="YES" attributeType="String"/>
            <attribute name="uuid" optional="YES" attributeType="UUID" usesScalarValueType="NO"/>
            <relationship name="posts" optional="YES" toMany="YES" deletionRule="Nullify" destinationEntity="Post" inverseName="tags" inverseEntity="Post"/>
        </entity>
        <entity name="VideoPost" representedClassName="VideoPost" parentEntity="Post" syncable="YES" codeGenerationType="class">
            <attribute name="videoData" optional="YES" attributeType="Binary"/>
        </entity>
    </model>

    """
}
