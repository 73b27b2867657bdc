// The page's style, made to fit a shadow tree: what meant the document means the element, and what
// asked for the window's width asks for the element's.

export function scoped(css: string): string {
  return css
    .replace(/:root:lang\((\w+)\)/g, ":host(:lang($1))")
    .replace(/:root(\[[^\]]+\])/g, ":host($1)")
    .replace(/:root/g, ":host")
    .replace(/(^|[{},\s])html(?=[\s,{])/g, "$1:host")
    .replace(/(^|[{},\s])body(?=[\s,{])/g, "$1.mw-root")
    .replace(/@media\s*\((?=[^()]*width)/g, "@container (");
}
