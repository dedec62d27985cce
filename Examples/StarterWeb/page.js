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
