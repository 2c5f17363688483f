//! Expansion of `#[kernel(...)]`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Expr, FnArg, Ident, ItemFn, Pat, Result, ReturnType, Token, parse_quote};

/// What stands in the parentheses of `#[kernel(...)]`.
struct Arguments {
    threads: Expr,
    shared: Expr,
    cluster: Expr,
    min_blocks: Expr,
}

/// One `name = expression`.
struct Argument {
    name: Ident,
    value: Expr,
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        Ok(Self { name, value: input.parse()? })
    }
}

impl Arguments {
    fn parse(tokens: TokenStream) -> Result<Self> {
        let list = Punctuated::<Argument, Token![,]>::parse_terminated.parse2(tokens)?;
        let (mut threads, mut shared, mut cluster, mut min_blocks) = (None, None, None, None);
        for Argument { name, value } in list {
            let slot = match name.to_string().as_str() {
                "threads" => &mut threads,
                "shared" => &mut shared,
                "cluster" => &mut cluster,
                "min_blocks" => &mut min_blocks,
                _ => return Err(Error::new(name.span(), "expected `threads`, `shared`, `cluster` or `min_blocks`")),
            };
            if slot.replace(value).is_some() {
                return Err(Error::new(name.span(), format!("`{name}` is given twice")));
            }
        }
        let required = |value: Option<Expr>, message| value.ok_or_else(|| Error::new(Span::call_site(), message));
        Ok(Self {
            threads: required(threads, "`threads = ...` is missing: the threads of a block")?,
            shared: required(shared, "`shared = ...` is missing: bytes of dynamic shared memory, 0 for none")?,
            cluster: cluster.unwrap_or_else(|| parse_quote!(1)),
            min_blocks: min_blocks.unwrap_or_else(|| parse_quote!(1)),
        })
    }
}

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let Arguments { threads, shared, cluster, min_blocks } = Arguments::parse(arguments)?;
    let function: ItemFn = syn::parse2(item)?;
    check(&function)?;

    let ItemFn { attrs, vis, sig, block } = &function;
    let (name, inputs) = (&sig.ident, &sig.inputs);
    let conditions = attrs.iter().filter(|a| a.path().is_ident("cfg"));
    let text = name.to_string();
    let spec = Ident::new(&text.to_uppercase(), name.span());
    // hopper-builder sets it to compile some kernels of a crate alone. Host builds are not affected.
    let left_out = std::env::var("HOPPER_ONLY").is_ok_and(|only| !text.contains(&only));
    let device = match left_out {
        true => TokenStream::new(),
        false => device_items(&function, &spec),
    };
    let spec_doc = format!("How [`{text}`](fn@{text}) must be launched.");
    Ok(quote! {
        #(#conditions)*
        #[doc = #spec_doc]
        #vis const #spec: ::hopper_std::KernelSpec =
            ::hopper_std::KernelSpec::new(#text, #threads, #min_blocks, #cluster, #shared);

        #device

        #(#attrs)*
        #[cfg(not(target_arch = "nvptx64"))]
        #vis unsafe fn #name(#inputs) #block
    })
}

/// The record and the entry.
fn device_items(function: &ItemFn, spec: &Ident) -> TokenStream {
    let ItemFn { attrs, vis, sig, block } = function;
    let (name, inputs) = (&sig.ident, &sig.inputs);
    let conditions = attrs.iter().filter(|a| a.path().is_ident("cfg"));
    let record = format_ident!("__hopper_spec_{}", name);
    quote! {
        #(#conditions)*
        #[cfg(target_arch = "nvptx64")]
        #[doc(hidden)]
        #[allow(non_upper_case_globals)]
        #[unsafe(no_mangle)]
        #[used]
        pub static #record: [u32; 8] = #spec.record();

        #(#attrs)*
        #[cfg(target_arch = "nvptx64")]
        #[unsafe(no_mangle)]
        #vis unsafe extern "ptx-kernel" fn #name(#inputs) #block
    }
}

/// Refuses what a PTX entry cannot be; all complaints at once.
fn check(function: &ItemFn) -> Result<()> {
    let sig = &function.sig;
    let mut complaints: Option<Error> = None;
    let mut complain = |span: Span, message: &str| {
        let error = Error::new(span, message);
        match &mut complaints {
            Some(all) => all.combine(error),
            None => complaints = Some(error),
        }
    };
    if sig.unsafety.is_none() {
        let message = "a kernel is an `unsafe fn`: its launch contract is its `# Safety` section";
        complain(sig.fn_token.span, message);
    }
    if let Some(token) = &sig.constness {
        complain(token.span, "a kernel cannot be `const`");
    }
    if let Some(token) = &sig.asyncness {
        complain(token.span, "a kernel cannot be `async`");
    }
    if let Some(abi) = &sig.abi {
        complain(abi.span(), "leave the ABI out: `#[kernel]` sets it");
    }
    if !sig.generics.params.is_empty() {
        let message = "a kernel has no generic parameters: write one kernel for each instance, by macro_rules";
        complain(sig.generics.params.span(), message);
    }
    if let Some(clause) = &sig.generics.where_clause {
        complain(clause.span(), "a kernel has no `where` clause");
    }
    if let ReturnType::Type(_, ty) = &sig.output {
        complain(ty.span(), "a kernel returns nothing: write results through pointers");
    }
    if let Some(variadic) = &sig.variadic {
        complain(variadic.span(), "a kernel has a fixed number of parameters");
    }
    for input in &sig.inputs {
        match input {
            FnArg::Receiver(receiver) => complain(receiver.span(), "a kernel is a free function, without `self`"),
            FnArg::Typed(parameter) if !matches!(*parameter.pat, Pat::Ident(_)) => {
                complain(parameter.pat.span(), "a kernel's parameter is a plain name");
            }
            FnArg::Typed(_) => {}
        }
    }
    if sig.ident.to_string().chars().any(|c| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')) {
        complain(
            sig.ident.span(),
            "a kernel's name is in ASCII snake_case: it becomes an entry, a constant and a file",
        );
    }
    complaints.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(tokens: TokenStream) -> String {
        tokens.to_string()
    }

    fn messages(arguments: TokenStream, item: TokenStream) -> Vec<String> {
        let error = expand(arguments, item).expect_err("must be refused");
        error.into_iter().map(|e| e.to_string()).collect()
    }

    #[test]
    fn expands_to_a_specification_a_record_and_two_functions() {
        let expanded = expand(
            quote!(threads = config::THREADS, shared = size_of::<Smem>(), cluster = 2),
            quote! {
                /// Doubles.
                pub unsafe fn double(x: *mut f32, n: u32) { body(x, n) }
            },
        );
        let expected = quote! {
            #[doc = "How [`double`](fn@double) must be launched."]
            pub const DOUBLE: ::hopper_std::KernelSpec =
                ::hopper_std::KernelSpec::new("double", config::THREADS, 1, 2, size_of::<Smem>());

            #[cfg(target_arch = "nvptx64")]
            #[doc(hidden)]
            #[allow(non_upper_case_globals)]
            #[unsafe(no_mangle)]
            #[used]
            pub static __hopper_spec_double: [u32; 8] = DOUBLE.record();

            /// Doubles.
            #[cfg(target_arch = "nvptx64")]
            #[unsafe(no_mangle)]
            pub unsafe extern "ptx-kernel" fn double(x: *mut f32, n: u32) { body(x, n) }

            /// Doubles.
            #[cfg(not(target_arch = "nvptx64"))]
            pub unsafe fn double(x: *mut f32, n: u32) { body(x, n) }
        };
        assert_eq!(text(expanded.unwrap()), text(expected));
    }

    #[test]
    fn conditions_hold_for_every_item() {
        let expanded = expand(
            quote!(threads = 32, shared = 0),
            quote! {
                #[cfg(feature = "attention")]
                pub unsafe fn forward() {}
            },
        );
        let condition = text(quote!(#[cfg(feature = "attention")]));
        assert_eq!(text(expanded.unwrap()).matches(&condition).count(), 4);
    }

    #[test]
    fn refuses_bad_arguments() {
        let item = quote!(
            pub unsafe fn k() {}
        );
        let first = |arguments| messages(arguments, item.clone()).remove(0);
        assert!(first(quote!(shared = 0)).contains("`threads = ...` is missing"));
        assert!(first(quote!(threads = 32)).contains("`shared = ...` is missing"));
        assert_eq!(first(quote!(threads = 32, threads = 64, shared = 0)), "`threads` is given twice");
        assert!(first(quote!(thread = 32)).starts_with("expected `threads`"));
    }

    #[test]
    fn refuses_what_no_entry_can_be_all_at_once() {
        let all = messages(
            quote!(threads = 32, shared = 0),
            quote!(
                pub const extern "C" fn Bad<const N: usize>((a, b): (u32, u32)) -> u32 {
                    0
                }
            ),
        );
        assert_eq!(all.len(), 7, "{all:?}");
    }
}
