/* SHOW: <form data-passkey> asks the browser for a passkey and sends it. */
for (const form of document.querySelectorAll("[data-passkey]")) {
  form.querySelector("button").disabled = false;
  form.onsubmit = async (event) => {
    event.preventDefault();
    try {
      const text = document.getElementById("passkey")?.textContent ?? (await (await fetch(form.action, { headers: { Accept: "application/json" } })).text());
      const { creation_options: make, request_options: ask } = JSON.parse(text);
      const [how, parse] = make ? ["create", "parseCreationOptionsFromJSON"] : ["get", "parseRequestOptionsFromJSON"];
      const key = await navigator.credentials[how]({ publicKey: PublicKeyCredential[parse]((make ?? ask).publicKey) });
      form.elements.credential.value = JSON.stringify(key);
      form.submit();
    } catch {
      form.querySelector("[data-said]").textContent = "The browser returned no passkey. Try again.";
    }
  };
}
