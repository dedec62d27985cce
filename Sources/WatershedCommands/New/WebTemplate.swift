/// A web page over CloudKit's web services, with a schema and a test that needs nothing but Node.
///
/// `Examples/StarterWeb` is what it makes for the name Starter; a test compares the two.
struct WebTemplate: PackageTemplate {
  var name: String

  var files: [PackageTemplateFile] {
    [
      PackageTemplateFile(path: "package.json", text: manifest),
      PackageTemplateFile(path: "README.md", text: readme),
      PackageTemplateFile(path: "schema.ckdb", text: schema),
      PackageTemplateFile(path: "config.js", text: configuration),
      PackageTemplateFile(path: "items.js", text: items),
      PackageTemplateFile(path: "page.js", text: script),
      PackageTemplateFile(path: "index.html", text: page),
      PackageTemplateFile(path: "items.test.js", text: tests),
    ]
  }

  private var manifest: String {
    #"""
    {
      "name": "\#(name.lowercased())-web",
      "private": true,
      "type": "module",
      "scripts": {
        "test": "${WATERSHED:-watershed} exec --schema schema.ckdb -- node --test"
      }
    }

    """#
  }

  // swift-format-ignore
  private var readme: String {
    #"""
    # \#(name)

    A page that keeps a list of items in an account's private database, over CloudKit's web services: no library, no build.

    ```
    npm test    # a server, and two pages' worth of calls; the server is gone afterwards
    ```

    The test needs Node and the program `watershed`. Where it is not in the `PATH`, name it, in a checkout for example
    `WATERSHED=/path/to/watershed/.build/debug/watershed npm test`.

    To see the page in a browser, start a server with `watershed serve` and put the API token of its banner into `config.js`.
    In a second terminal, in this folder, import the schema and serve the page:

    ```
    watershed schema import --container-id iCloud.org.example.app --file schema.ckdb
    python3 -m http.server 8000
    ```

    The page is at `http://localhost:8000`. In development the server hands user tokens to pages of `localhost`; a page of
    another origin needs a token of its own: `watershed tokens add --container-id … --origin https://app.example.org`.

    | To change | Look in |
    |---|---|
    | the fields, their indexes and who may read them | `schema.ckdb` |
    | what is sent to the server | `items.js` |
    | the page | `index.html`, `page.js` |
    | what is tested | `items.test.js` |

    """#
  }

  private var schema: String {
    #"""
    DEFINE SCHEMA

        RECORD TYPE Item (
            "___createTime" TIMESTAMP SORTABLE,
            "___recordID"   REFERENCE QUERYABLE,
            title           STRING QUERYABLE,
            GRANT WRITE TO "_creator",
            GRANT CREATE TO "_icloud",
            GRANT READ TO "_creator"
        );

    """#
  }

  private var configuration: String {
    #"""
    // What the banner of `watershed serve` prints. The API token names the app and is no secret.
    export const config = {
      url: 'http://127.0.0.1:8080',
      container: 'iCloud.org.example.app',
      environment: 'development',
      apiToken: '',
    }

    """#
  }

  private var items: String {
    #"""
    /** An error that the server answered, with its code. */
    export class CloudKitError extends Error {
      constructor({ serverErrorCode, reason, redirectURL }) {
        super(reason ?? serverErrorCode)
        this.code = serverErrorCode
        /** The sign-in page, if a user has to sign in first. */
        this.redirectURL = redirectURL
      }
    }

    /** The items of one account, in the private database of a container. */
    export class Items {
      constructor({ url, container, environment, apiToken, webAuthToken }) {
        this.base = `${url}/database/1/${encodeURIComponent(container)}/${environment}/private/`
        this.apiToken = apiToken
        this.webAuthToken = webAuthToken
      }

      async call(endpoint, body) {
        const query = new URLSearchParams({ ckAPIToken: this.apiToken })
        if (this.webAuthToken) query.set('ckWebAuthToken', this.webAuthToken)
        const response = await fetch(`${this.base}${endpoint}?${query}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
        const reply = await response.json()
        if (!response.ok) throw new CloudKitError(reply)
        return reply
      }

      /** All items, oldest first; the server gives them in pages. */
      async all() {
        const items = []
        let continuationMarker
        do {
          const page = await this.call('records/query', {
            query: {
              recordType: 'Item',
              sortBy: [{ systemFieldName: 'createdTimestamp', ascending: true }],
            },
            continuationMarker,
          })
          items.push(...page.records)
          continuationMarker = page.continuationMarker
        } while (continuationMarker)
        return items
      }

      async add(title) {
        return this.modify({
          operationType: 'create',
          record: { recordType: 'Item', fields: { title: { value: title } } },
        })
      }

      /** Deletes an item, unless it was changed since it was read: that is the error CONFLICT. */
      async remove({ recordName, recordChangeTag }) {
        return this.modify({ operationType: 'delete', record: { recordName, recordChangeTag } })
      }

      async modify(operation) {
        const { records } = await this.call('records/modify', { operations: [operation] })
        if (records[0].serverErrorCode) throw new CloudKitError(records[0])
        return records[0]
      }
    }

    """#
  }

  // swift-format-ignore
  private var script: String {
    #"""
    import { config } from './config.js'
    import { Items } from './items.js'

    const list = document.querySelector('ul')
    const form = document.querySelector('form')
    const signIn = document.querySelector('#sign-in')
    const message = document.querySelector('output')
    const items = new Items({ ...config, webAuthToken: sessionStorage.getItem('webAuthToken') })

    /** Runs what may need a sign-in, and shows what goes wrong. */
    async function attempt(work) {
      message.textContent = ''
      try {
        await work()
      } catch (error) {
        message.textContent = error.message
        // The page opens at a click alone: browsers block windows that open by themselves.
        signIn.hidden = !error.redirectURL
        signIn.onclick = () => window.open(error.redirectURL, 'sign-in', 'popup,width=480,height=640')
      }
    }

    async function show() {
      const all = await items.all()
      list.replaceChildren(
        ...all.map((item) => {
          const row = document.createElement('li')
          row.textContent = item.fields.title?.value ?? ''
          const button = document.createElement('button')
          button.textContent = 'Done'
          button.onclick = () => attempt(async () => {
            await items.remove(item)
            await show()
          })
          row.append(' ', button)
          return row
        }),
      )
    }

    form.addEventListener('submit', (event) => {
      event.preventDefault()
      attempt(async () => {
        await items.add(form.elements.title.value)
        form.reset()
        await show()
      })
    })

    // The sign-in page hands the user's token to the page that asked.
    window.addEventListener('message', (event) => {
      if (event.origin !== new URL(config.url).origin || !event.data.ckWebAuthToken) return
      items.webAuthToken = event.data.ckWebAuthToken
      sessionStorage.setItem('webAuthToken', items.webAuthToken)
      signIn.hidden = true
      attempt(show)
    })

    attempt(show)

    """#
  }

  private var page: String {
    #"""
    <!doctype html>
    <html lang="en">
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <title>\#(name)</title>
    <h1>\#(name)</h1>
    <button id="sign-in" hidden>Sign in</button>
    <ul></ul>
    <form>
      <label>New item <input name="title" required></label>
      <button>Add</button>
    </form>
    <output role="status"></output>
    <script type="module" src="page.js"></script>
    </html>

    """#
  }

  private var tests: String {
    #"""
    import assert from 'node:assert/strict'
    import { test } from 'node:test'
    import { Items } from './items.js'

    // `watershed exec` sets these variables.
    const { env } = process
    const place = {
      url: env.WATERSHED_CLOUDKIT_URL,
      container: env.WATERSHED_CLOUDKIT_CONTAINER,
      environment: env.WATERSHED_CLOUDKIT_ENVIRONMENT,
      apiToken: env.WATERSHED_CLOUDKIT_API_TOKEN,
    }
    const webAuthToken = env.WATERSHED_CLOUDKIT_WEB_AUTH_TOKEN

    test('an item that one page adds is on the other, until it is removed', async () => {
      const phone = new Items({ ...place, webAuthToken })
      const laptop = new Items({ ...place, webAuthToken })
      await phone.add('Buy milk')
      await phone.add('Read')
      const found = await laptop.all()
      assert.deepEqual(found.map((item) => item.fields.title.value), ['Buy milk', 'Read'])
      await laptop.remove(found[0])
      assert.deepEqual((await phone.all()).map((item) => item.fields.title.value), ['Read'])
    })

    test('without a user token the error names the sign-in page', async () => {
      await assert.rejects(new Items(place).all(), (error) => {
        assert.equal(error.code, 'AUTHENTICATION_REQUIRED')
        assert.ok(error.redirectURL.startsWith(place.url))
        return true
      })
    })

    """#
  }
}
