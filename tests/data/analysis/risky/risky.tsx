const password: string = 'hunter2hunter'; // RISK secret

export function Page({ text }: { text: string }) {
  eval(text); // RISK eval
  return (
    <p
      dangerouslySetInnerHTML={{ __html: text }} // RISK html
    />
  );
}
