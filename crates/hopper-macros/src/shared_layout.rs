//! Expansion of `#[derive(SharedLayout)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Result};

pub(crate) fn expand(item: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    if !is_repr_c(&input.attrs)? {
        let message = "SharedLayout needs #[repr(C)]: without it the compiler may order the fields as it likes";
        return Err(Error::new(input.ident.span(), message));
    }
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => &fields.named,
            _ => return Err(Error::new(input.ident.span(), "SharedLayout needs a struct with named fields")),
        },
        _ => return Err(Error::new(input.ident.span(), "SharedLayout needs a struct")),
    };
    let functions = fields.iter().map(|field| {
        let (vis, name, ty) = (&field.vis, &field.ident, &field.ty);
        let written: Vec<&Attribute> = field.attrs.iter().filter(|a| a.path().is_ident("doc")).collect();
        let docs = match written.is_empty() {
            true => quote!(#[doc = "Where this field lies in shared memory."]),
            false => quote!(#(#written)*),
        };
        let conditions = field.attrs.iter().filter(|a| a.path().is_ident("cfg"));
        quote! {
            #(#conditions)*
            #docs
            #[inline(always)]
            #vis fn #name(this: ::hopper_std::sm90::Shared<Self>) -> ::hopper_std::sm90::Shared<#ty> {
                // SAFETY: the offset and the type are those of a field of `Self`, at which `this` points.
                unsafe { this.project::<#ty>(::core::mem::offset_of!(Self, #name)) }
            }
        }
    });
    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    Ok(quote! {
        #[allow(dead_code, clippy::undocumented_unsafe_blocks)]
        impl #impl_generics #name #type_generics #where_clause {
            #(#functions)*
        }
    })
}

fn is_repr_c(attrs: &[Attribute]) -> Result<bool> {
    let mut found = false;
    for attr in attrs.iter().filter(|a| a.path().is_ident("repr")) {
        attr.parse_nested_meta(|meta| {
            found |= meta.path.is_ident("C");
            if meta.input.peek(syn::token::Paren) {
                let content;
                syn::parenthesized!(content in meta.input);
                content.parse::<TokenStream>()?;
            }
            Ok(())
        })?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_gets_a_projection() {
        let expanded = expand(quote! {
            /// Shared memory.
            #[repr(C, align(1024))]
            pub struct Smem<T, const STAGES: usize> where T: Copy {
                /// The tiles of A.
                pub a: [T; STAGES],
                full: [u64; STAGES],
            }
        });
        let expected = quote! {
            #[allow(dead_code, clippy::undocumented_unsafe_blocks)]
            impl<T, const STAGES: usize> Smem<T, STAGES> where T: Copy {
                /// The tiles of A.
                #[inline(always)]
                pub fn a(this: ::hopper_std::sm90::Shared<Self>) -> ::hopper_std::sm90::Shared<[T; STAGES]> {
                    unsafe { this.project::<[T; STAGES]>(::core::mem::offset_of!(Self, a)) }
                }
                #[doc = "Where this field lies in shared memory."]
                #[inline(always)]
                fn full(this: ::hopper_std::sm90::Shared<Self>) -> ::hopper_std::sm90::Shared<[u64; STAGES]> {
                    unsafe { this.project::<[u64; STAGES]>(::core::mem::offset_of!(Self, full)) }
                }
            }
        };
        assert_eq!(expanded.unwrap().to_string(), expected.to_string());
    }

    #[test]
    fn refuses_other_layouts() {
        let refused = |item| expand(item).expect_err("must be refused").to_string();
        assert!(
            refused(quote!(
                struct S {
                    a: u32,
                }
            ))
            .contains("needs #[repr(C)]")
        );
        assert!(
            refused(quote!(
                #[repr(align(8))]
                struct S {
                    a: u32,
                }
            ))
            .contains("needs #[repr(C)]")
        );
        assert!(
            refused(quote!(
                #[repr(C)]
                struct S(u32);
            ))
            .contains("named fields")
        );
        assert!(
            refused(quote!(
                #[repr(C)]
                enum E {
                    A,
                }
            ))
            .ends_with("needs a struct")
        );
    }
}
